package sim

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// Shipped are the scenarios that ship with the program.
var Shipped = []NamedScenario{
	{"latency_sweep", "three nodes, Redis 0 to 24 ms away, 3.6 times the limit", latencySweep},
	{"rollout", "20 nodes change from 100/s to 50/s one after the other, at 3 times the limit", rollout},
	{"outage_many_keys", "20 nodes, 5,000 keys at 3 times their limits, Redis gone for 5 s", outageManyKeys},
	{"flash_sale", "50 nodes, a shop's limit of 5,000/s, ten times the load for a tenth of the time", flashSale},
	{"edge", "200 nodes at the edge, Redis 14 to 18 ms away, 20 of them cut off for 3 s", edge},
}

// NamedScenario is a scenario that ships with the program. It is one run or several.
type NamedScenario struct {
	Name, About string
	Runs        func(seed uint64) []Scenario
}

func bucket(name string, perSecond, burst int64) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: name, Events: perSecond, Period: time.Second, Burst: burst, Algorithm: tidegate.TokenBucket})
}

func one(name string, l *tidegate.Limit, keys int, load float64) []Subject {
	return []Subject{{Name: name, Versions: []*tidegate.Limit{l}, Keys: keys, Load: load}}
}

func latencySweep(seed uint64) (all []Scenario) {
	for ms := 0; ms <= 24; ms += 3 {
		all = append(all, Scenario{
			Name: fmt.Sprintf("Redis %d ms away", ms), Seed: seed, Nodes: 3, Lasts: 10 * time.Second,
			Subjects: one(fmt.Sprintf("%d ms", ms), bucket("hot", 100, 10), 1, 3.6),
			Network:  Network{Latency: time.Duration(ms) * time.Millisecond},
		})
	}
	return all
}

func rollout(seed uint64) []Scenario {
	return []Scenario{{
		Name: "rollout", Seed: seed, Nodes: 20, Lasts: 20 * time.Second,
		Subjects: []Subject{{Name: "api", Versions: []*tidegate.Limit{bucket("api", 100, 100), bucket("api", 50, 20)}, Keys: 20, Load: 3}},
		Rollout:  Span{5 * time.Second, 15 * time.Second},
		Network:  Network{Latency: time.Millisecond, Jitter: time.Millisecond},
	}}
}

func outageManyKeys(seed uint64) []Scenario {
	return []Scenario{{
		Name: "outage with many keys", Seed: seed, Nodes: 20, Lasts: 16 * time.Second,
		Subjects: one("user", bucket("user", 2, 20), 5000, 3),
		Network:  Network{Latency: time.Millisecond, Jitter: time.Millisecond},
		Faults:   []Fault{{Kind: Silent, At: 5 * time.Second, For: 5 * time.Second}},
	}}
}

func flashSale(seed uint64) []Scenario {
	return []Scenario{{
		Name: "flash sale", Seed: seed, Nodes: 50, Lasts: 20 * time.Second, Shape: Flash,
		Subjects: one("checkout", bucket("checkout", 5000, 1000), 1, 1),
		Network:  Network{Latency: time.Millisecond, Jitter: time.Millisecond},
		Server:   Server{PerCall: 10 * time.Microsecond},
	}}
}

func edge(seed uint64) []Scenario {
	s := Scenario{
		Name: "200 edge nodes", Seed: seed, Nodes: 200, Lasts: 12 * time.Second,
		Subjects: one("account", bucket("account", 1000, 1000), 5, 1.5),
		Network:  Network{Latency: 14 * time.Millisecond, Jitter: 4 * time.Millisecond},
	}
	f := Fault{Kind: Silent, At: 5 * time.Second, For: 3 * time.Second}
	for i := range 20 {
		f.Nodes = append(f.Nodes, i)
	}
	s.Faults = []Fault{f}
	return []Scenario{s}
}
