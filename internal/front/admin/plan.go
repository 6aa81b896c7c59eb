package admin

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// Proposal is rules that are not in force, for POST /rules/plan.
type Proposal struct {
	// Layer is the layer of this server that the proposal replaces, as named by /rules/status. ""
	// means that the proposal is all rules.
	Layer string `json:"layer,omitempty"`
	// Main is the rule file to begin with; "" means all rule files at the top, as in a folder.
	Main string `json:"main,omitempty"`
	// Over are further rule files or folders to begin with, each a layer over those before it.
	Over []string `json:"over,omitempty"`
	// Files by their path, with slashes: rule files, lists, included files.
	Files map[string]string `json:"files"`
	// SkipKeys leaves out live keys, which are what takes time.
	SkipKeys bool `json:"skip_keys,omitempty"`
}

// Plan is what would happen to counters and their keys if a [Proposal] came into force.
type Plan struct {
	Valid    bool      `json:"valid"`
	Problems diag.List `json:"problems"` // errors, and warnings
	Hash     string    `json:"hash,omitempty"`
	Added    []string  `json:"added,omitempty"` // rules
	Removed  []string  `json:"removed,omitempty"`
	// Counters are the counters that do not simply continue, in words.
	Counters []string `json:"counters,omitempty"`
	// Keys says how live keys would be affected, by rule and limit; those with the most newly
	// refused keys first.
	Keys []KeysPlan `json:"keys,omitempty"`
	// Unknown says why live keys are unknown, or some of them.
	Unknown string `json:"unknown,omitempty"`
}

// KeysPlan says how the live keys of one limit would be affected.
type KeysPlan struct {
	Rule string `json:"rule"`
	Was  string `json:"was"` // the limit in words
	Now  string `json:"now"`
	// Keys is how many keys have counts. Refused is how many of them are refused now.
	Keys    int64 `json:"keys"`
	Refused int64 `json:"refused"`
	// AtLeast and AtMost are how many keys that are admitted now would be refused. They differ
	// where a key does not say which branch or tier its caller has.
	AtLeast int64 `json:"newly_refused_at_least"`
	AtMost  int64 `json:"newly_refused_at_most"`
	// Freed is at least how many keys that are refused now would be admitted.
	Freed int64 `json:"freed,omitempty"`
	// Seen is the share of the keys that was examined. Below 1, the numbers are estimates; newly
	// refused keys are off by at most Margin in 95 of 100 cases.
	Seen   float64 `json:"seen"`
	Margin int64   `json:"margin,omitempty"`
	// Names are some of the keys that would newly be refused, those with the least room first.
	Names [][]offenders.Part `json:"names,omitempty"`
}

// Surveyor is a store that can tell how other limits would affect its keys, without changing
// anything: see [memory.Store.Survey].
type Surveyor interface {
	Survey(ctx context.Context, asked [][]tidegate.Check, names [][]string, f func(i int, key string, left []int64)) (seen []float64, err error)
}

const (
	maxProposal  = 64 << 20
	maxPlanNames = 10
	// surveyTime is how long a plan may examine live keys.
	surveyTime = time.Minute
)

// plan answers what would happen to counters if other rules came into force.
func (s *server) plan(r *http.Request) (any, error) {
	var q Proposal
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	switch {
	case s.Rules == nil || s.CompileFiles == nil:
		return nil, problemf(http.StatusNotFound, "There are no rules here to compare others with.")
	case len(q.Files) == 0:
		return nil, problemf(http.StatusBadRequest, "There are no files; send them by their names.")
	}
	set, err := s.CompileFiles(&q)
	if err != nil {
		load, ok := errors.AsType[*rules.LoadError](err)
		if !ok {
			return nil, problemf(http.StatusBadRequest, "The rules cannot be read: %v.", err)
		}
		return Plan{Problems: append(diag.List{}, load.Problems...)}, nil
	}
	old := s.Rules.Live().Set()
	p := Plan{Valid: true, Problems: append(diag.List{}, set.Warnings()...), Hash: s.Rules.Status().Hash}
	p.Added, p.Removed = beyond(set.Rules(), old.Rules()), beyond(old.Rules(), set.Rules())
	for _, c := range rules.Compare(old, set) {
		p.Counters = append(p.Counters, c.String())
	}
	if !q.SkipKeys {
		s.planKeys(r.Context(), &p, rules.Carry(old, set))
	}
	return p, nil
}

// beyond returns the elements of a that are not in b.
func beyond(a, b []string) (all []string) {
	had := make(map[string]bool, len(b))
	for _, name := range b {
		had[name] = true
	}
	for _, name := range a {
		if !had[name] {
			all = append(all, name)
		}
	}
	return all
}

// planKeys examines the live keys of counters that would continue under other limits.
func (s *server) planKeys(ctx context.Context, p *Plan, carried []rules.Carried) {
	if len(carried) == 0 {
		return
	}
	if s.Survey == nil {
		p.Unknown = "the store cannot say who is counted"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	tallies := make([]*tally, len(carried))
	asked, names := make([][]tidegate.Check, len(carried)), make([][]string, len(carried))
	for i := range carried {
		tallies[i] = newTally(&carried[i])
		asked[i] = tallies[i].asked
		if s.KeysOf != nil {
			names[i] = s.KeysOf(carried[i].Rule)
		}
		if tallies[i].split() && s.Fleet != nil {
			p.Unknown = "limits with `consistency: split` or `eventual` are counted by each instance by itself, and their keys are not looked at"
		}
	}
	shown := progressOf(ctx)
	seen, err := s.Survey.Survey(ctx, asked, names, func(i int, key string, left []int64) {
		tallies[i].add(key, left)
		shown.add(1)
	})
	if err != nil {
		p.Unknown = "live keys cannot be looked at: " + err.Error()
		return
	}
	for i, t := range tallies {
		p.Keys = join(p.Keys, t.keys(seen[i], s.SubjectOf))
	}
	slices.SortStableFunc(p.Keys, func(a, b KeysPlan) int { return cmp.Compare(b.AtMost, a.AtMost) })
}

// join adds the keys of a counter to those of the same rule and limits with another scope.
func join(all []KeysPlan, k KeysPlan) []KeysPlan {
	for i := range all {
		o := &all[i]
		if o.Rule != k.Rule || o.Was != k.Was || o.Now != k.Now {
			continue
		}
		o.Keys, o.Refused, o.Freed = o.Keys+k.Keys, o.Refused+k.Refused, o.Freed+k.Freed
		o.AtLeast, o.AtMost, o.Margin = o.AtLeast+k.AtLeast, o.AtMost+k.AtMost, o.Margin+k.Margin
		o.Seen = min(o.Seen, k.Seen)
		o.Names = append(o.Names, k.Names...)
		o.Names = o.Names[:min(len(o.Names), maxPlanNames)]
		return all
	}
	return append(all, k)
}

// margin returns how far an estimate of n keys may be off in 95 of 100 cases, if the share seen of
// keys was examined.
func margin(n, keys int64, seen float64) int64 {
	if seen >= 1 || keys == 0 {
		return 0
	}
	p := float64(n) / float64(keys)
	// Add one, in case no key of the sample was affected.
	return int64(math.Ceil(1.96*math.Sqrt(max(p*(1-p), 1/float64(keys))*float64(keys))/seen)) + 1
}
