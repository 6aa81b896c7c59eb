package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// What is taken ahead comes from the backend or from nobody, whatever is the matter with it,
// and within the deadline.
func TestTakeAhead(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(faulty)
				g := newNode(store, Options{})
				defer func() { // calls that are out end
					store.set(none)
					_ = g.Close()
					time.Sleep(time.Second)
				}()
				l := limit("api", 100, tidegate.FailLocal)
				checks := []tidegate.Check{one(l)}
				granted, rest, err := g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.Granted != 70 || granted.Receipt.Origin != tidegate.OriginStore || rest.Limit != nil {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				granted, rest, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.Granted != 30 {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				granted, rest, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.OK || rest.OK || rest.RetryAfter <= 0 || rest.Limit != l {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				store.set(fault)
				checks[0].Key = "another"
				for range 20 {
					began := time.Now()
					granted, _, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
					if took := time.Since(began); err == nil || granted.OK || took > DefaultDeadline {
						t.Fatalf("%+v, %v after %s", granted, err, took)
					}
				}
				if h := g.Health(); h.State != Degraded || h.Admitted+h.Refused != 0 {
					t.Errorf("%+v", h)
				}
				if _, _, err := g.TakeAhead(t.Context(), checks, 70, time.Second); !errors.Is(err, ErrOpen) {
					t.Errorf("while the circuit is open: %v", err)
				}
			})
		})
	}
}
