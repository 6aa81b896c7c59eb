package rules

import (
	"reflect"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// rule is a compiled rule. A Set may have a hundred thousand: equal parts of rules are shared, and
// rare parts are in extra. The parsed rule is not kept.
type rule struct {
	name     string
	pos      diag.Pos
	mode     rulefile.Mode
	deny     bool            // it refuses, and counts nothing
	queues   bool            // requests wait for their turn in the rule itself or in one of its branches
	share    int             // of keys that are enforced, in hundredths of a percent
	subject  *subject        // shared
	policies *policies       // shared
	terms    *rulefile.Terms // of requests that take no branch; shared
	plans    []plan          // the rule's own, then one for each branch
	clamped  atomic.Int64
	kindsOf  atomic.Pointer[[]*plan] // nil means not computed yet; see kinds
	*extra
}

// extra has what few rules have. Rules without any of it share one.
type extra struct {
	branches []rulefile.Branch
	tier     *rulefile.TierUse
	count    *rulefile.Count
	deferred *rulefile.Defer
	respond  *rulefile.Respond
	block    time.Duration // 0 means none
	leaves   leaves        // by set_aside
	shed     *shedder
	forks    forks // which branch a request takes
	blocks   []*tidegate.Limit
	decides  access
	tries    access // for requests that the rule only tries for
	// replacers are the entries of the rules that name this one in instead_of.
	replacers []int32
	// chosen are the counters whose algorithm was determined by `consistency`, by identity.
	chosen map[string]bool
}

// access has the limits of a rule that refuse without counting.
type access struct {
	deny   *tidegate.Limit   // nil means the rule limits
	refuse []*tidegate.Limit // by part of per: refuses requests without it; nil means that none is refused
}

// noExtra is shared by all rules that have no extra. It is never written to.
var noExtra = new(extra)

// own returns the extra of r, unshared if necessary, so that it can be written to.
func (r *rule) own() *extra {
	if r.extra == noExtra {
		r.extra = new(extra)
	}
	return r.extra
}

// rule compiles a rule.
func (c *compiler) rule(w *rulefile.Rule) *rule {
	x := &extra{branches: w.For, tier: w.Tier, count: w.Count, deferred: w.Defer, respond: w.Respond, block: w.Block, leaves: c.file.Leaves(w)}
	r := &rule{
		name: w.Name.Text, pos: w.Pos, mode: w.Mode, deny: w.Deny, queues: w.Queues, share: w.Share,
		policies: c.policies(w), terms: c.terms(w.Terms), extra: x,
	}
	c.at = w.Pos
	subject, ok := c.subjectOf(w)
	if !ok {
		c.fail(w.PerPos, "`per` can be found in more than 256 ways, and each has counters of its own",
			"name fewer identities, or identities with fewer sources")
		return r
	}
	r.subject = subject
	x.shed = c.shedder(w.Shed, r.name, w.Mode)
	decides := w.Mode == rulefile.Enforce && w.Share > 0
	tries := w.Mode == rulefile.Shadow || w.Share < wholeShare
	l := c.limiterOf(r)
	if decides {
		r.decides = c.access(l, subject, tidegate.Decides)
	}
	if tries {
		r.tries = c.access(l, subject, tidegate.Tries)
	}
	if !w.Deny {
		p := planner{compiler: c, limiter: l, written: w, scopes: subject.scopes, decides: decides, tries: tries}
		r.plans = p.plans()
		r.forks = newForks(r.plans[1:])
		for _, scope := range subject.scopes {
			if r.block > 0 {
				r.blocks = append(r.blocks, c.must(l.block(scope)))
			}
		}
	}
	if reflect.ValueOf(x).Elem().IsZero() {
		r.extra = noExtra
	}
	return r
}

// access makes the limits of the rule that refuse without counting: deny, and one for each part of
// per that refuses requests without it.
func (c *compiler) access(l *limiter, s *subject, as tidegate.Role) (a access) {
	spec := tidegate.Spec{Algorithm: tidegate.Deny}
	if l.rule.deny {
		a.deny = c.must(l.limit(spec, "", role{is: as}))
	}
	for i := range s.parts {
		if s.parts[i].missing != rulefile.MissingRefuse {
			continue
		}
		spec.Name, spec.Terms = l.rule.name, &tidegate.Terms{
			Rule: l.rule.name,
			Role: as,
			Answer: tidegate.Answer{
				Status: 400, Unidentified: true, Message: "the request has no " + s.parts[i].id.name,
				Dialects: l.answer.Dialects, Reset: l.answer.Reset,
			},
			Handling: tidegate.Handling{OnStoreFailure: l.rule.policies.onStoreFailure},
		}
		if a.refuse == nil {
			a.refuse = make([]*tidegate.Limit, len(s.parts))
		}
		a.refuse[i] = c.must(tidegate.NewLimit(spec))
	}
	return a
}

// written returns the part of the parsed rule that explanations and overrides need.
func (r *rule) written() *rulefile.Rule {
	return &rulefile.Rule{
		Name: rulefile.Word{Text: r.name}, Terms: *r.terms, For: r.branches, Tier: r.tier,
		Consistency: rulefile.Word{Text: r.policies.consistency}, Queues: r.queues,
	}
}

const (
	wholeShare = 10_000
	// FNV-1a: short, and the same in every release and on every node.
	seedBasis = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashText(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime // marks the end of the text
}

// enforcedFor reports whether key is in the share of keys that the rule decides for.
func (r *rule) enforcedFor(key string) bool {
	if r.share >= wholeShare {
		return true
	}
	return mixed(hashText(hashText(seedBasis, r.name), key))%wholeShare < uint64(r.share)
}

// mixed spreads a hash over all bits: the last bits of FNV-1a are not uniform.
func mixed(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}
