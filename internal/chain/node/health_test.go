package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var told []string
		way := &faulty{}
		g := newNode(way, Options{OnState: func(h Health) {
			told = append(told, fmt.Sprintf("%s since %s: %v", h.State, h.Since.Sub(start).Round(time.Second), h.Why))
		}})
		if h := g.Health(); h.State != OK || !h.Since.Equal(start) || h.Why != nil {
			t.Errorf("%+v", h)
		}
		time.Sleep(10 * time.Second)
		way.set(broken)
		d, err := g.Take(t.Context(), []tidegate.Check{one(limit("open", 1, tidegate.FailOpen))}, 1)
		if err != nil || !errors.Is(d.Err, errBroken) || errors.Is(d.Err, ErrOpen) {
			t.Errorf("%+v, %v", d, err)
		}
		for range 10 {
			d, _ = g.Take(t.Context(), []tidegate.Check{one(limit("open", 1, tidegate.FailOpen))}, 1)
		}
		if !errors.Is(d.Err, errBroken) || !errors.Is(d.Err, ErrOpen) {
			t.Errorf("%+v", d)
		}
		time.Sleep(30 * time.Second)
		if h := g.Health(); h.State != Degraded || h.Since.Sub(start) != 10*time.Second || !errors.Is(h.Why, errBroken) {
			t.Errorf("%+v", h)
		}
		way.set(none)
		time.Sleep(20 * time.Second)
		if h := g.Health(); h.State != OK || h.Since.Sub(start) < 40*time.Second || h.Why != nil || h.Errors < DefaultFailures || h.Allowed != 11 {
			t.Errorf("%+v", h)
		}
		want := []string{"degraded since 10s: connection refused", "recovering since 10s: connection refused", "ok since 41s: <nil>"}
		if len(told) == 3 {
			want[2] = told[2] // it takes up to a second and a half to be sure
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		_ = g.Close()
	})
}

// Close ends the goroutine, also in the middle of an outage, and calls go on being
// answered.
func TestClose(t *testing.T) {
	for name, is := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := &faulty{fault: is}
				g := newNode(way, Options{})
				l := limit("l", 100, tidegate.FailLocal)
				spend(t, g, l, "k", 20)
				time.Sleep(3 * time.Second)
				for range 2 {
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				}
				way.set(none)
				time.Sleep(time.Second)
				wantNoGoroutine(t)
				if n := spend(t, g, l, "k", 100); n != 80 {
					t.Errorf("%d admitted after Close, want 80", n)
				}
			})
		})
	}
}
