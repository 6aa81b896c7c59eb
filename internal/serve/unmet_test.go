package serve

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/rules"
)

// Words about a fleet that do nothing in this process are told; those that do something are not.
func TestUnmetConsistency(t *testing.T) {
	var regions []config.Shard
	const alone = "it says how a fleet shares counters, and those of this process are its own"
	f := func(redis bool, top, said, want string) {
		t.Helper()
		set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+top+"\nrules: [{ name: a, per: ip, limits: 5/minute, "+said+" }]"), rules.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := &server{config: &config.Config{Store: config.Store{Redis: config.Redis{Regions: regions}}}}
		if redis {
			s.shared = &shared{}
		}
		var got []string
		for _, p := range s.unmet(set) {
			got = append(got, strings.TrimPrefix(p.Message, "`"+strings.SplitN(said, ":", 2)[0]+"` of the rule `a` does nothing here: "))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s, Redis %v: told %q, want %q", said, redis, got, want)
		}
	}
	for _, mode := range []string{"strict", "leased", "eventual", "split", "{ mode: leased, deny_cache: false }", "{ mode: split }", "{ deny_cache: false }"} {
		f(true, "", "consistency: "+mode, "")
		f(true, "instances: 3", "consistency: "+mode, "")
	}
	f(true, "", "on_partition: share", "it is about fleets in several regions, and there are no `store.regions`")
	for _, mode := range []string{"strict", "leased", "eventual"} {
		f(false, "instances: 3", "consistency: "+mode, alone)
	}
	f(false, "", "on_partition: share", alone)
	f(false, "instances: 3", "consistency: split", "")
	f(false, "", "consistency: split", "there is no Redis to count instances in, and the rules do not say `instances`: this one has the whole limit")
	regions = []config.Shard{{Name: "us"}}
	f(true, "", "on_partition: share", "regions share limits with `consistency: eventual`; each has the whole limit of this one")
	f(true, "", "on_partition: share, consistency: eventual", "")
}
