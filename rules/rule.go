package rules

import (
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// rule is a rule of the file, compiled.
type rule struct {
	name    string
	written *rulefile.Rule
	mode    rulefile.Mode
	subject subject
	plans   []plan // the rule's own, then one for each branch
	forks   forks  // which branch a request takes
	blocks  []*tidegate.Limit
	deny    *tidegate.Limit // nil: the rule limits
	refuse  []*tidegate.Limit
	// The same for requests that the rule only tries.
	denyTries   *tidegate.Limit
	refuseTries []*tidegate.Limit
	// replacers are the entries of the rules that name this one in instead_of.
	replacers []int32
	seed      uint64 // of the share of keys that are enforced
	// chosen are the counters whose algorithm is what `consistency` means, by identity.
	chosen  map[string]bool
	clamped atomic.Int64
	// limiter makes further limits of the rule, for overrides. It remembers none of them.
	limiter   *limiter
	kindsOnce sync.Once
	kindsOf   []*plan // see kinds
}

// rule compiles a rule.
func (c *compiler) rule(w *rulefile.Rule) *rule {
	r := &rule{name: w.Name.Text, written: w, mode: w.Mode, seed: hashText(seedBasis, w.Name.Text)}
	c.at = w.Pos
	subject, ok := c.subject(w)
	if !ok {
		c.fail(w.PerPos, "`per` can be found in more than 256 ways, and each has counters of its own",
			"name fewer identities, or identities with fewer sources")
		return r
	}
	r.subject = subject
	decides := w.Mode == rulefile.Enforce && w.Share > 0
	tries := w.Mode == rulefile.Shadow || w.Share < wholeShare
	l := newLimiter(c.file, w)
	r.chosen = l.chosen
	if decides {
		r.deny, r.refuse = c.access(l, &subject, tidegate.Decides)
	}
	if tries {
		r.denyTries, r.refuseTries = c.access(l, &subject, tidegate.Tries)
	}
	if w.Deny {
		return r
	}
	p := planner{compiler: c, limiter: l, rule: w, scopes: subject.scopes, decides: decides, tries: tries}
	r.plans = p.plans()
	r.forks = newForks(r.plans[1:])
	for _, scope := range subject.scopes {
		r.blocks = append(r.blocks, c.must(l.block(scope)))
	}
	r.limiter = l.apart()
	return r
}

// access makes the limits of the rule that count nothing: deny, and for each part
// of per the one that refuses who comes without.
func (c *compiler) access(l *limiter, s *subject, as tidegate.Role) (deny *tidegate.Limit, refuse []*tidegate.Limit) {
	spec := tidegate.Spec{Algorithm: tidegate.Deny}
	if l.rule.Deny {
		deny = c.must(l.limit(spec, "", role{is: as}))
	}
	for i := range s.parts {
		if s.parts[i].missing != rulefile.MissingRefuse {
			refuse = append(refuse, nil)
			continue
		}
		spec.Name, spec.Terms = l.rule.Name.Text, &tidegate.Terms{
			Rule: l.rule.Name.Text,
			Role: as,
			Answer: tidegate.Answer{
				Status: 400, Message: "the request has no " + s.parts[i].id.name,
				Dialects: l.answer.Dialects, Reset: l.answer.Reset,
			},
			Handling: tidegate.Handling{OnStoreFailure: l.fail},
		}
		refuse = append(refuse, c.must(tidegate.NewLimit(spec)))
	}
	return deny, refuse
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
	return (h ^ 0xff) * fnvPrime // ends the text
}

// enforcedFor reports whether key is in the share of keys that the rule decides.
func (r *rule) enforcedFor(key string) bool {
	if r.written.Share >= wholeShare {
		return true
	}
	h := hashText(r.seed, key)
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h%wholeShare < uint64(r.written.Share)
}
