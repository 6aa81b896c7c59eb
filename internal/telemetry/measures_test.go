package telemetry

import (
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// However many are banned, their refusals have one label, which counts on when rules are
// reloaded; those of a ban that names a rule, and of overrides, are the rule's.
func TestBansHaveOneLabel(t *testing.T) {
	d := newDesk(t, "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 1/hour }]\n", memory.New())
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 1/hour }]\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	live := rules.NewLive(set)
	var all []rules.Measure
	for i := range 500 {
		who := map[string]string{"user": fmt.Sprintf("banned-%d", i)}
		all = append(all, rules.Measure{ID: fmt.Sprint(i), Kind: rules.Ban, As: who})
	}
	all = append(all, rules.Measure{ID: "r", Kind: rules.Ban, As: map[string]string{"user": "eve"}, Rule: "api"},
		rules.Measure{ID: "o", Kind: rules.Override, As: map[string]string{"user": "ann"}, Rule: "api", Limits: []string{"2/hour"}})
	if problems := live.SetMeasures(all); problems != nil {
		t.Fatal(problems)
	}
	d.gate = tidegate.NewGate(live, memory.New()).Observe(d.Observe)
	for i := range 500 {
		d.ask(t, "/", who{"user": fmt.Sprintf("banned-%d", i)})
	}
	d.ask(t, "/", who{"user": "eve"})
	for range 3 {
		d.ask(t, "/", who{"user": "ann"})
	}
	wants := []string{
		`tidegate_decisions_total{outcome="denied",rule="(ban)"} 500`, `tidegate_decisions_total{outcome="denied",rule="api"} 1`,
		`tidegate_decisions_total{outcome="ok",rule="api"} 2`, `tidegate_decisions_total{outcome="refused",rule="api"} 1`,
	}
	d.wants(t, wants...)
	d.SetRules(set.Rules(), set.Limits())
	d.wants(t, wants...)
	if strings.Contains(d.page(t), "banned-") {
		t.Error("somebody is shown")
	}
}
