package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/storetest"
)

// wrong is a Buckets with a mistake.
type wrong struct {
	*Buckets
	take func(b *Buckets, c tidegate.Check) (tidegate.Decision, error)
}

func (w wrong) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if len(checks) != 1 || n != 1 {
		return w.Buckets.Take(ctx, checks, n)
	}
	return w.take(w.Buckets, checks[0])
}

func plainTake(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
	return b.Take(context.Background(), []tidegate.Check{c}, 1)
}

var mistakes = map[string]func(b *Buckets, c tidegate.Check) (tidegate.Decision, error){
	"charges peeks": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		c.Cost = max(c.Cost, 1)
		return plainTake(b, c)
	},
	"has one counter for all keys": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		c.Key = ""
		return plainTake(b, c)
	},
	"takes keys for text": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		c.Key = strings.ToValidUTF8(strings.Trim(c.Key, "\x00 "), "?")
		return plainTake(b, c)
	},
	"ignores the cost": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		c.Cost = min(c.Cost, 1)
		return plainTake(b, c)
	},
	"says a moment too early when to come back": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		d, err := plainTake(b, c)
		if d.RetryAfter > time.Microsecond {
			d.RetryAfter -= time.Microsecond
		}
		return d, err
	},
	"does not say how much is left": func(b *Buckets, c tidegate.Check) (tidegate.Decision, error) {
		d, err := plainTake(b, c)
		d.Remaining = 0
		return d, err
	},
}

const mistakeVariable = "TIDEGATE_MISTAKE"

// TestWrongBucket does something only in the process that the next test starts.
func TestWrongBucket(t *testing.T) {
	name := os.Getenv(mistakeVariable)
	if name == "" {
		return
	}
	take, part := mistakes[name], "token_bucket"
	if take == nil {
		take, part = plainTake, name
	}
	storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
		return wrong{&Buckets{Now: now, levels: map[string]level{}}, take}
	}, storetest.Only(part), storetest.Brief())
}

// Being asked for one part alone, a store is still held to it. A part that does not
// exist fails the test.
func TestWrongBucketsAreSeen(t *testing.T) {
	wants := map[string]string{"token_buckets": `there is no part "token_buckets"`, "floors": "no algorithm is selected"}
	for name := range mistakes {
		wants[name] = "--- FAIL: TestWrongBucket/"
	}
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestWrongBucket$", "-test.failfast", "-test.timeout=5m")
			cmd.Env = append(os.Environ(), mistakeVariable+"="+name)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%v, want %q in\n%s", err, want, out)
			}
		})
	}
}
