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
    limits: { rate: %d/second, algorithm: %s }
    %s
    consistency: %s
`

// bothSetAside leaves 60 % to the last class.
const bothSetAside = "set_aside: { critical: 20%, paying: 20% }"

// classLoad is two instances on one limit, whose lower classes ask without end.
type classLoad struct {
	*testing.T
	gates []*tidegate.Gate
	stop  atomic.Bool
	rest  atomic.Int64 // admitted of the last class
}

func newClassLoad(t *testing.T, algorithm, consistency string, stores ...tidegate.Store) *classLoad {
	l := &classLoad{T: t}
	for _, s := range stores {
		l.gates = append(l.gates, classGate(t, 2000, algorithm, bothSetAside, consistency, s))
	}
	return l
}

// classGate is a node with its version of the rule.
func classGate(t *testing.T, perSecond int, algorithm, setAside, consistency string, s tidegate.Store) *tidegate.Gate {
	t.Helper()
	set, err := rules.Parse("rules.yaml", fmt.Appendf(nil, classRules, perSecond, algorithm, setAside, consistency), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tidegate.NewGate(set, s)
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
	}
	// If the paying ones came first, they could leave nothing to the others, rightly.
	testdep.Await(10*time.Second, func() bool { return l.rest.Load() > 0 })
	for _, g := range l.gates {
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

// twoOnRedis returns what opens two instances that share counters of their own.
func twoOnRedis(t *testing.T) func(*testing.T) []tidegate.Store {
	server := testdep.Redis(t)
	opened := 0
	return func(t *testing.T) []tidegate.Store {
		opened++
		url := fmt.Sprintf("redis://%s?prefix=classes%d", server.Addr, opened)
		o := fleet.Options{Deadline: patient, Instances: func() int { return 2 }}
		return []tidegate.Store{open(t, url, o), open(t, url, o)}
	}
}

// However much the lower classes ask for, what is set aside is there for the first, and the last class
// never gets more than what is left to it: in memory, on Redis, from leases and of shares.
func TestClassesUnderLoad(t *testing.T) {
	two := twoOnRedis(t)
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
	f("split", "token_bucket", "split", two, bucket)
	f("split", "fixed_window", "split", two, window)
}

// Two nodes have two versions of the rule, one of which sets more aside, or nothing, or has another limit.
// Each holds its own last class to what is left to it, and both together are within the larger limit.
func TestClassesOfTwoVersions(t *testing.T) {
	two := twoOnRedis(t)
	f := func(algorithm, consistency string, perSecond int, setAside string, left int64) {
		t.Run(fmt.Sprint(algorithm, " ", consistency, " ", perSecond, " ", setAside), func(t *testing.T) {
			stores := two(t)
			l := &classLoad{T: t, gates: []*tidegate.Gate{
				classGate(t, 2000, algorithm, bothSetAside, consistency, stores[0]),
				classGate(t, perSecond, algorithm, setAside, consistency, stores[1]),
			}}
			most := int64(max(2000, perSecond))
			within := func(what string, got, left int64, took time.Duration) {
				t.Helper()
				allowed := left + int64(float64(most)*took.Seconds()) + 1
				if algorithm == "fixed_window" {
					allowed = left * (2 + int64(took/time.Second))
				}
				if got > allowed {
					t.Errorf("%d of %s are admitted in %s, want at most %d", got, what, took, allowed)
				}
			}
			var critical atomic.Int64
			rest := make([]atomic.Int64, 2)
			var all sync.WaitGroup
			start := time.Now()
			for i, g := range l.gates {
				all.Go(func() { l.press(g, "/", &rest[i]) })
				all.Go(func() { l.press(g, "/", &rest[i]) })
			}
			for i := range 60 {
				time.Sleep(5 * time.Millisecond)
				d := l.gates[i%2].Decide(context.Background(), &tidegate.Request{Method: "POST", Path: "/charges"})
				if d.Err != nil {
					t.Error(d.Err)
				} else if d.OK {
					critical.Add(1)
				}
			}
			l.stop.Store(true)
			all.Wait()
			took := time.Since(start)
			within("the last class of the first version", rest[0].Load(), 1200, took)
			within("the last class of the other version", rest[1].Load(), left, took)
			sum := rest[0].Load() + rest[1].Load() + critical.Load()
			within("all", sum, most, took)
			if rest[0].Load()+rest[1].Load() == 0 {
				t.Error("none of the last class is admitted")
			}
		})
	}
	for _, consistency := range []string{"strict", "leased"} {
		for _, algorithm := range []string{"token_bucket", "fixed_window"} {
			f(algorithm, consistency, 2000, "", 2000)
			f(algorithm, consistency, 1000, "set_aside: { critical: 50% }", 500)
			f(algorithm, consistency, 4000, "set_aside: { critical: 10% }", 3600)
		}
	}
}
