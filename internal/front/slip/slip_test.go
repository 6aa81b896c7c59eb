package slip_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
)

var some = slip.Slip{
	At: time.UnixMilli(1_800_000_000_123).UTC(), Node: "web-1:4711", Rules: "0123456789abcdef", Rule: "api", Limit: "5/10s sliding_log",
	Scope: "user", Key: "42", Remaining: 0, Capacity: 5, RetryAfter: 8400 * time.Millisecond, Flags: slip.Blocked | slip.Local,
}

func TestSealAndOpen(t *testing.T) {
	s := slip.NewSealer()
	f := func(change func(*slip.Slip)) {
		t.Helper()
		want := some
		change(&want)
		text := s.Seal(&want)
		if got, err := s.Open(text); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if got, err := s.Open(" " + text + "\n"); err != nil || got != want { // as people paste it
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if !strings.HasPrefix(text, slip.Prefix) || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%q is not a word", text)
		}
	}
	f(func(*slip.Slip) {})
	f(func(p *slip.Slip) { *p = slip.Slip{At: time.UnixMilli(0).UTC()} })
	f(func(p *slip.Slip) { p.Remaining, p.Capacity, p.RetryAfter = -5, tidegate.MaxCount, 366*24*time.Hour })
	f(func(p *slip.Slip) { p.Key = strings.Repeat("k", 128) })
	f(func(p *slip.Slip) { p.Flags = 255 })

	long := some
	long.Node, long.Rule, long.Limit, long.Scope, long.Key, long.Rules = sized(300), sized(300), sized(300), sized(300), sized(300), sized(300)
	text := s.Seal(&long)
	if got, err := s.Open(text); err != nil || got.Key != sized(128) || len(text) > 1200 {
		t.Errorf("%v, %d bytes: %+v", err, len(text), got)
	}
	if n := len(s.Seal(&some)); n > 160 {
		t.Errorf("a usual slip has %d bytes", n)
	}
}

func sized(n int) string { return strings.Repeat("x", n) }

// Whatever is changed, it is not opened: neither one character, nor with the key of another.
func TestForgedSlips(t *testing.T) {
	s := slip.NewSealer("a key of sixteen bytes or more")
	text := s.Seal(&some)
	for i := range len(text) {
		for _, c := range []byte{'A', 'b', '0', '_', '=', '\n', 0xff} {
			forged := text[:i] + string(c) + text[i+1:]
			if forged == text {
				continue
			}
			if _, err := s.Open(forged); !errors.Is(err, slip.ErrUnknown) && strings.TrimSpace(forged) != text {
				t.Errorf("%q at %d was opened: %v", c, i, err)
			}
		}
		if _, err := s.Open(text[:i]); !errors.Is(err, slip.ErrUnknown) {
			t.Errorf("%d characters were opened: %v", i, err)
		}
	}
	for _, bad := range []string{text + "A", text + text, strings.Repeat("A", 1<<20), "rs1_", "tt1_" + text[4:]} {
		if _, err := s.Open(bad); !errors.Is(err, slip.ErrUnknown) {
			t.Errorf("%.40q was opened: %v", bad, err)
		}
	}
	if _, err := slip.NewSealer().Open(text); !errors.Is(err, slip.ErrUnknown) {
		t.Errorf("another key opens it: %v", err)
	}
}

// Processes with the same key open each other's slips, also those of keys before.
func TestKeysOfSlips(t *testing.T) {
	const before, now = "the key of last year", "the key of this year"
	old := slip.NewSealer(before).Seal(&some)
	if got, err := slip.NewSealer(now, before).Open(old); err != nil || got != some {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := slip.NewSealer(now).Open(old); !errors.Is(err, slip.ErrUnknown) {
		t.Errorf("a key that is gone opens: %v", err)
	}
	if got, err := slip.NewSealer(now).Open(slip.NewSealer(now, before).Seal(&some)); err != nil || got != some {
		t.Errorf("the first key does not seal: %+v, %v", got, err)
	}
}

// No two slips are the same, whoever seals them: nonces are not used twice.
func TestSlipsDiffer(t *testing.T) {
	const key = "a key of sixteen bytes or more"
	seen := make(map[string]bool)
	for range 20 {
		s := slip.NewSealer(key)
		done := make(chan []string)
		for range 4 {
			go func() {
				var all []string
				for range 50 {
					all = append(all, s.Seal(&some))
				}
				done <- all
			}()
		}
		for range 4 {
			for _, text := range <-done {
				// The first 16 bytes are salt and counter.
				if begin := text[:len(slip.Prefix)+22]; seen[begin] {
					t.Fatalf("%s twice", begin)
				} else {
					seen[begin] = true
				}
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := slip.NewSealer("a key of sixteen bytes or more")
	f.Add(s.Seal(&some))
	f.Add("rs1_AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := s.Open(text); err == nil && got != some {
			t.Errorf("%q is %+v", text, got)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := slip.NewSealer()
	l, err := tidegate.NewLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 100, Period: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	checks := []tidegate.Check{{Key: "customer-4711", Limit: l, Cost: 1}}
	d := tidegate.Decision{Limit: l, RetryAfter: 8 * time.Second}
	b.ReportAllocs()
	for b.Loop() {
		is := slip.Of(checks, &d, time.Now())
		is.Node, is.Rules = "web-1.eu.example.com:4711", "0123456789abcdef"
		s.Seal(&is)
	}
}
