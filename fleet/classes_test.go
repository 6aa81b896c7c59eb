package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const classRules = `version: 1
classes:
  - { name: critical, match: POST /charges }
  - { name: paying, match: /paid/ }
  - { name: rest }
rules:
  - name: site
    per: everyone
    limits: { rate: 2000/second, algorithm: %s }
    set_aside: { critical: 20%%, paying: 20%% }
    consistency: %s
`

// classLoad is two instances on one limit, whose lower classes ask without end.
type classLoad struct {
	*testing.T
	gates []*tidegate.Gate
	stop  atomic.Bool
	rest  atomic.Int64 // admitted of the last class
}

func newClassLoad(t *testing.T, algorithm, consistency string, stores ...tidegate.Store) *classLoad {
	set, err := rules.Parse("rules.yaml", fmt.Appendf(nil, classRules, algorithm, consistency), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &classLoad{T: t}
	for _, s := range stores {
		l.gates = append(l.gates, tidegate.NewGate(set, s))
	}
	return l
}

// press asks for requests of a lower class until the load is to stop.
func (l *classLoad) press(g *tidegate.Gate, path string, admitted *atomic.Int64) {
	for !l.stop.Load() {
		d := g.Decide(context.Background(), &tidegate.Request{Method: "GET", Path: path})
		switch {
		case d.Err != nil:
			l.Error(d.Err)
			return
		case d.OK:
			admitted.Add(1)
		default: // as a client would, so that instances have time for others
			time.Sleep(min(d.RetryAfter, 5*time.Millisecond))
		}
	}
}

// run asks for fewer critical requests than are set aside, under the load of the others. It returns
// how long that took.
func (l *classLoad) run() time.Duration {
	var all sync.WaitGroup
	var paying atomic.Int64
	start := time.Now()
	for _, g := range l.gates {
		all.Go(func() { l.press(g, "/", &l.rest) })
		all.Go(func() { l.press(g, "/", &l.rest) })
		all.Go(func() { l.press(g, "/paid/x", &paying) })
	}
	for i := range 100 {
		time.Sleep(5 * time.Millisecond)
		g := l.gates[i%len(l.gates)]
		if d := g.Decide(context.Background(), &tidegate.Request{Method: "POST", Path: "/charges"}); !d.OK || d.Err != nil {
			l.Errorf("critical request %d: %+v", i, d)
		}
	}
	l.stop.Store(true)
	all.Wait()
	return time.Since(start)
}

// However much the lower classes ask for, what is set aside is there for the first, and the last class
// never gets more than what is left to it: in memory, on Redis and from leases.
func TestClassesUnderLoad(t *testing.T) {
	server := testdep.Redis(t)
	opened := 0
	two := func(t *testing.T) []tidegate.Store {
		opened++
		url := fmt.Sprintf("redis://%s?prefix=classes%d", server.Addr, opened)
		o := fleet.Options{Deadline: patient, Instances: func() int { return 2 }}
		return []tidegate.Store{open(t, url, o), open(t, url, o)}
	}
	one := func(*testing.T) []tidegate.Store { return []tidegate.Store{memory.New()} }
	const left = 2000 * 60 / 100 // to the last class
	f := func(name, algorithm, consistency string, stores func(*testing.T) []tidegate.Store, most func(took time.Duration) int64) {
		t.Run(name+" "+algorithm, func(t *testing.T) {
			l := newClassLoad(t, algorithm, consistency, stores(t)...)
			took := l.run()
			if got := l.rest.Load(); got == 0 || got > most(took) {
				t.Errorf("%d of the last class are admitted in %s; want 1 to %d", got, took, most(took))
			}
		})
	}
	bucket := func(took time.Duration) int64 { return left + int64(2000*took.Seconds()) + 1 }
	// Windows in which it begins and ends are two.
	window := func(took time.Duration) int64 { return left * (2 + int64(took/time.Second)) }
	for name, stores := range map[string]func(*testing.T) []tidegate.Store{"memory": one, "redis": two} {
		f(name, "token_bucket", "strict", stores, bucket)
		f(name, "fixed_window", "strict", stores, window)
		f(name, "sliding_log", "strict", stores, window)
		// An estimate may admit a little more in some window.
		f(name, "sliding_window", "strict", stores, func(took time.Duration) int64 { return 2 * window(took) })
		f(name, "sub_windows", "strict", stores, func(took time.Duration) int64 { return 2 * window(took) })
	}
	f("leased", "token_bucket", "leased", two, bucket)
	f("leased", "fixed_window", "leased", two, window)
}
