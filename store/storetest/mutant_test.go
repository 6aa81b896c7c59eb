package storetest

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// mutants are stores with the bugs that others had; the suite must see each of
// them in the group of tests named.
var mutants = map[string]struct {
	group string
	take  func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error)
}{
	"charges one by one": {"vector", func(r *reference, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
		for i := range checks {
			if d, err = r.Take(context.Background(), checks[i:i+1], n); err != nil || !d.OK {
				return d, err
			}
		}
		return d, nil
	}},
	"charges and refunds": {"concurrent/last", func(r *reference, checks []tidegate.Check, n int) (d tidegate.Decision, err error) {
		for i := range checks {
			if d, err = r.Take(context.Background(), checks[i:i+1], n); err != nil || d.OK {
				continue
			}
			for _, c := range checks[:i] {
				c.Cost = -c.Cost
				_ = r.Adjust(context.Background(), d.Receipt, []tidegate.Check{c})
			}
			return d, err
		}
		return d, err
	}},
	"charges refusals": {"single", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		d, err := r.Take(context.Background(), checks, n)
		if err == nil && !d.OK && len(checks) == 1 && checks[0].Cost < checks[0].Limit.Capacity() {
			_ = r.Adjust(context.Background(), d.Receipt, checks)
		}
		return d, err
	}},
	"lets advice decide": {"advisory", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		for i := range checks {
			checks[i].Advisory = false
		}
		return r.Take(context.Background(), checks, n)
	}},
	"does not say who is over": {"advisory/over", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		d, err := r.Take(context.Background(), checks, n)
		for i := range checks {
			checks[i].Over = false
		}
		return d, err
	}},
	"says over for ever": {"advisory/over", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		before := append([]tidegate.Check(nil), checks...)
		d, err := r.Take(context.Background(), checks, n)
		for i := range checks {
			checks[i].Over = checks[i].Over || before[i].Over
		}
		return d, err
	}},
	"counts access rules": {"misuse", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		for i := range checks {
			if checks[i].Limit.Algorithm == tidegate.Deny {
				return tidegate.Decision{OK: true, Granted: int64(n), Limit: checks[i].Limit}, nil
			}
		}
		return r.Take(context.Background(), checks, n)
	}},
	"rounds retry to seconds": {"retry", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		d, err := r.Take(context.Background(), checks, n)
		d.RetryAfter = d.RetryAfter.Truncate(time.Second) + time.Second
		return d, err
	}},
	"joins name and key": {"identity", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		for i := range checks {
			spec := checks[i].Limit.Spec
			checks[i].Key = spec.Name + "_" + checks[i].Key
			spec.Name = ""
			checks[i].Limit = tidegate.MustLimit(spec)
		}
		return r.Take(context.Background(), checks, n)
	}},
	"names leases by the microsecond": {"slots", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		d, err := r.Take(context.Background(), checks, n)
		d.Receipt.At = d.Receipt.At / 1024 * 1024
		return d, err
	}},
	"grants all copies or none": {"copies", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		d, err := r.Take(context.Background(), checks, 1)
		if d.OK {
			d.Granted = int64(n)
		}
		return d, err
	}},
	"refills on an odd clock": {"time", func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error) {
		if now := r.now().UnixMicro(); now%1_000_000 != 0 {
			_ = r.Reset(context.Background(), checks)
		}
		return r.Take(context.Background(), checks, n)
	}},
}

// mutant is the reference with another Take.
type mutant struct {
	*reference
	take func(r *reference, checks []tidegate.Check, n int) (tidegate.Decision, error)
}

func (m mutant) Take(_ context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	own := append([]tidegate.Check(nil), checks...)
	d, err := m.take(m.reference, own, n)
	for i := range checks {
		checks[i].Over = own[i].Over
	}
	return d, err
}

const mutantVariable = "STORETEST_MUTANT"

// TestMutant fails, in a process of its own, when the suite sees the bug, also when it is brief.
func TestMutant(t *testing.T) {
	m, ok := mutants[os.Getenv(mutantVariable)]
	if !ok {
		return // not in that process: see TestMutantsAreSeen
	}
	Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store { return mutant{newReference(now), m.take} }, Brief())
}

func TestMutantsAreSeen(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestMutant$/"+m.group, "-test.failfast", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the suite passes a store that %s", name)
			}
			if !strings.Contains(string(out), "--- FAIL: TestMutant/"+m.group) {
				t.Errorf("expected failures in %q, got:\n%s", m.group, out)
			}
		})
	}
}
