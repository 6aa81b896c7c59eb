package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// ledger lists the counters of the rules of a Set: all that is needed when other rules replace
// them.
type ledger []*account

// account lists the counters of one rule.
type account struct {
	Rule   string     `json:"rule"`
	Scopes []string   `json:"scopes"` // sources, or combinations of them, of what is counted
	Plans  []counters `json:"plans"`  // of the rule itself, and of its branches
	Blocks counters   `json:"blocks"`
	// Rows are the values of an identity of `per` that are counted apart, where all others are
	// counted together. Other identities have no entry.
	Rows map[string][]string `json:"rows,omitempty"`
	// Lives is how long each counter remembers, by identity of the limit: the longest of all limits
	// that share it.
	Lives     map[string]time.Duration `json:"lives"`
	lookbacks map[string]time.Duration // how far into the past each counts
}

// counters are those of a plan.
type counters struct {
	Conditions string      `json:"conditions,omitempty"`
	By         [][]counter `json:"by"` // scope
	// Tier and Row say what the plan is for if it was not written as a branch.
	Tier   string              `json:"tier,omitempty"`
	TierBy string              `json:"tier_by,omitempty"` // the identity that names it
	Row    []rulefile.RowValue `json:"row,omitempty"`
}

// at returns the counters of one scope; none if the rule is disabled.
func (c *counters) at(scope int) []counter {
	if scope >= len(c.By) {
		return nil
	}
	return c.By[scope]
}

// counter is where a limit counts.
type counter struct {
	limit    *tidegate.Limit
	anchored bool // a quota whose first day depends on the caller; limit is that of callers without one
	strict   bool // a nominal limit that sometimes decides; its ceiling is the next counter

	// These are not saved.
	most    *tidegate.Limit // the largest, if its number comes from the caller; otherwise nil
	maxWait time.Duration   // how far it is booked ahead
	tries   bool            // it never decides
}

func (s *Set) ledger() ledger {
	var all ledger
	for _, r := range s.rules {
		a := &account{
			Rule: r.name, Scopes: r.subject.scopes, Lives: r.times(life),
			lookbacks: r.times(func(l *tidegate.Limit, _ time.Duration) time.Duration { return lookback(l) }),
		}
		for i := range r.plans {
			a.Plans = append(a.Plans, r.plans[i].counters())
		}
		for i := range r.subject.parts {
			if p := &r.subject.parts[i]; p.rows != nil {
				if a.Rows == nil {
					a.Rows = make(map[string][]string)
				}
				a.Rows[p.id.name] = slices.Compact(slices.Sorted(maps.Values(p.rows)))
			}
		}
		for _, l := range r.blocks {
			if l == nil {
				break // the rule has none
			}
			a.Blocks.By = append(a.Blocks.By, []counter{{limit: l}})
		}
		all = append(all, a)
	}
	return all
}

func (p *plan) counters() counters {
	all := counters{Conditions: p.conds.text()}
	if b := p.branch; b != nil && b.Made && b.Within.Line == 0 {
		if all.Tier, all.Row = b.Tier, b.Row; b.Tier != "" {
			all.TierBy = b.When[0].Name.Text
		}
	}
	by := p.decides
	if by == nil {
		by = p.tries
	}
	for _, items := range by {
		var made []counter
		for i := range items {
			it := &items[i]
			h, anchored := it.some(), it.vary != nil && !it.vary.clamp
			if h.nominal != nil {
				made = append(made, counter{limit: h.nominal, anchored: anchored, tries: true, strict: h.strict != nil})
			}
			c := counter{limit: h.limit, anchored: anchored, maxWait: h.maxWait, tries: h.tries || p.decides == nil}
			if it.vary != nil && it.vary.clamp {
				c.most = it.vary.get(it.vary.most).limit
			}
			made = append(made, c)
		}
		all.By = append(all.By, made)
	}
	return all
}

// text returns the conditions as they were written.
func (g *whenUnless) text() string {
	var b strings.Builder
	for _, all := range []conditions{g.when, g.unless} {
		for i := range all {
			b.WriteString(all[i].id.name + ": " + all[i].text + "\n")
		}
		b.WriteString("unless\n")
	}
	return b.String()
}

// times returns the longest time that of returns for the limits that share a counter, for each
// counter of the rule, by identity.
func (r *rule) times(of func(l *tidegate.Limit, maxWait time.Duration) time.Duration) map[string]time.Duration {
	times := make(map[string]time.Duration)
	add := func(l *tidegate.Limit, maxWait time.Duration) {
		if l != nil {
			times[l.Identity()] = max(times[l.Identity()], of(l, maxWait))
		}
	}
	for i := range r.plans {
		r.plans[i].eachLimit(add)
	}
	for _, l := range r.blocks {
		add(l, 0)
	}
	return times
}

// eachLimit calls f for the limits of the plan, with how far ahead they are booked. If a number of
// a limit comes from the caller, it calls f for the fallback, the smallest and the largest.
func (p *plan) eachLimit(f func(l *tidegate.Limit, maxWait time.Duration)) {
	for _, by := range [][][]item{p.decides, p.tries} {
		for _, items := range by {
			for i := range items {
				it := &items[i]
				all := []*held{it.some()}
				if it.vary != nil {
					all = append(all, it.vary.get(1), it.vary.get(it.vary.most))
				}
				for _, h := range all {
					if h.nominal != nil {
						f(h.nominal, h.maxWait)
					}
					f(h.limit, h.maxWait)
				}
			}
		}
	}
}

func (c *counter) text() string {
	text := strings.TrimPrefix(c.limit.String(), c.limit.Name+": ")
	if shared := sharedAs(c.limit); shared == tidegate.Split || shared == tidegate.Eventual { // counted elsewhere
		text += " " + shared.String()
	}
	return text
}

// class returns what the limit counts, slots or events, and its scope. A counter can only be
// replaced by one of its class.
func (c *counter) class() string {
	if c.limit.Algorithm == tidegate.Concurrency {
		return "slots " + c.limit.Scope
	}
	return "events " + c.limit.Scope
}

// each returns the limits of the counter: limit itself and, if the first day depends on the caller,
// one for each day.
func (c *counter) each() []*tidegate.Limit {
	all := []*tidegate.Limit{c.limit}
	for day := 1; c.anchored && day <= 31; day++ {
		spec := c.limit.Spec
		spec.Anchor = day
		all = append(all, tidegate.MustLimit(spec))
	}
	return all
}

// saved is a counter in JSON.
type saved struct {
	Name          string            `json:"name"`
	Scope         string            `json:"scope"`
	Events        int64             `json:"events"`
	Period        time.Duration     `json:"period,omitempty"`
	Algorithm     string            `json:"algorithm"`
	Burst         int64             `json:"burst,omitempty"`
	Parts         int               `json:"parts,omitempty"`
	Ceiling       bool              `json:"ceiling,omitempty"`
	CountRejected bool              `json:"count_rejected,omitempty"`
	Calendar      tidegate.Calendar `json:"calendar,omitempty"`
	Zone          string            `json:"zone,omitempty"`
	Anchor        int               `json:"anchor,omitempty"`
	Anchored      bool              `json:"anchored,omitempty"`
	Strict        bool              `json:"strict,omitempty"`
	Consistency   string            `json:"consistency,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c counter) MarshalJSON() ([]byte, error) {
	l := c.limit
	s := saved{
		Name: l.Name, Scope: l.Scope, Events: l.Events, Period: l.Period, Algorithm: l.Algorithm.String(), Burst: l.Burst, Parts: l.Parts,
		Ceiling: l.Ceiling, CountRejected: l.CountRejected, Calendar: l.Calendar, Zone: l.Zone, Anchor: l.Anchor, Anchored: c.anchored, Strict: c.strict,
	}
	if shared := sharedAs(l); shared != tidegate.Strict {
		s.Consistency = shared.String()
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *counter) UnmarshalJSON(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	spec := tidegate.Spec{
		Name: s.Name, Scope: s.Scope, Events: s.Events, Period: s.Period, Burst: s.Burst, Parts: s.Parts, Ceiling: s.Ceiling,
		CountRejected: s.CountRejected, Calendar: s.Calendar, Zone: s.Zone, Anchor: s.Anchor,
	}
	for a := tidegate.TokenBucket; a < tidegate.Deny; a++ {
		if a.String() == s.Algorithm {
			spec.Algorithm = a
		}
	}
	if spec.Algorithm == tidegate.Auto {
		return fmt.Errorf("unknown algorithm %q", s.Algorithm)
	}
	switch s.Consistency {
	case "":
	case tidegate.Leased.String():
		spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Leased}}
	case tidegate.Split.String():
		spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Split}}
	case tidegate.Eventual.String():
		spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}}
	default:
		return fmt.Errorf("unknown consistency %q", s.Consistency)
	}
	if s.Anchored && (spec.Algorithm != tidegate.Quota || spec.Calendar != tidegate.Month && spec.Calendar != tidegate.Year) {
		return fmt.Errorf("%s per %s does not start on a day of each caller", s.Algorithm, spec.Calendar)
	}
	l, err := tidegate.NewLimit(spec)
	c.limit, c.anchored, c.strict = l, s.Anchored, s.Strict
	return err
}
