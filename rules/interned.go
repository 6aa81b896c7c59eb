package rules

import (
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// interned has one copy of what several rules have in common. Of many rules, most have the same per,
// the same policies, and one of a few limits.
type interned struct {
	policies map[policies]*policies
	subjects map[subjectKey]*subject
	terms    map[rulefile.Terms]*rulefile.Terms
	limits   map[limitsKey]*rulefile.Limits
}

func newInterned() interned {
	return interned{
		policies: make(map[policies]*policies),
		subjects: make(map[subjectKey]*subject),
		terms:    make(map[rulefile.Terms]*rulefile.Terms),
		limits:   make(map[limitsKey]*rulefile.Limits),
	}
}

// policies are the settings that most rules inherit from the defaults of the file, and what the
// file says about all answers.
type policies struct {
	onStoreFailure tidegate.FailMode
	onFull         tidegate.OnFull
	consistency    string // "", strict, leased, eventual, split
	onPartition    string // "", continue, share
	layers         rulefile.Layers
	answerDefaults *answerDefaults
}

// answerDefaults are the settings of the file for the answers to all requests.
type answerDefaults struct {
	headers rulefile.Headers
	respond *rulefile.Respond
}

func (c *compiler) policies(w *rulefile.Rule) *policies {
	p := policies{
		onStoreFailure: failModes[w.OnStoreFailure], onFull: w.OnFull,
		consistency: w.Consistency.Text, onPartition: w.OnPartition.Text, layers: w.Layers, answerDefaults: c.answerDefaults,
	}
	return once(c.interned.policies, p)
}

// subjectKey is what determines a subject, unless there are tables or tiers.
type subjectKey struct {
	per        string
	missing    rulefile.Missing
	missingSet bool
}

// subjectOf returns what w counts by; false means that it has more than maxScopes scopes.
func (c *compiler) subjectOf(w *rulefile.Rule) (*subject, bool) {
	key := subjectKey{perText(w.Per), w.Missing, w.HasMissing}
	if had := c.interned.subjects[key]; had != nil && len(w.Known) == 0 {
		return had, true
	}
	s, ok := c.subject(w)
	if ok && len(w.Known) == 0 {
		c.interned.subjects[key] = &s
	}
	return &s, ok
}

func perText(per []rulefile.Word) string {
	if len(per) == 1 {
		return per[0].Text
	}
	names := make([]string, len(per))
	for i, w := range per {
		names[i] = w.Text
	}
	return strings.Join(names, ",") // which no name has
}

// limitsKey is limits without their positions, for lists short enough to be shared.
type limitsKey struct {
	n         int
	unlimited bool
	all       [fewLimits]limitKey
}

type limitKey struct {
	text string
	spec tidegate.Spec
	auto bool
}

// fewLimits is the length of the longest lists that are shared; longer ones are seldom equal.
const fewLimits = 3

// terms returns t with shared limits. Those have no position: no message points at limits without
// mistakes.
func (c *compiler) terms(t rulefile.Terms) *rulefile.Terms {
	t.Limits = c.sharedLimits(t.Limits)
	return once(c.interned.terms, t)
}

// once returns the value in all that equals v; if there is none, it adds v.
func once[T comparable](all map[T]*T, v T) *T {
	had := all[v]
	if had == nil {
		had = new(T)
		*had = v
		all[v] = had
	}
	return had
}

func (c *compiler) sharedLimits(l *rulefile.Limits) *rulefile.Limits {
	if l == nil || len(l.All) > fewLimits {
		return l
	}
	key := limitsKey{n: len(l.All), unlimited: l.Unlimited}
	for i := range l.All {
		one := &l.All[i]
		if one.From != nil {
			return l
		}
		key.all[i] = limitKey{one.Text, one.Spec, one.Auto}
	}
	had := c.interned.limits[key]
	if had == nil {
		had = &rulefile.Limits{Unlimited: l.Unlimited, All: make([]rulefile.Limit, len(l.All))}
		for i := range l.All {
			had.All[i] = rulefile.Limit{Text: l.All[i].Text, Spec: l.All[i].Spec, Auto: l.All[i].Auto}
		}
		c.interned.limits[key] = had
	}
	return had
}
