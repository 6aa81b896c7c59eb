package lint

import (
	"fmt"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// perInstance is how many events a lease needs room for, for each instance: a
// lease is worth taking from two events on, and half of what is there at most.
const perInstance = 4

func consistencyNeeds(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if r.Deny || p.byDefault(r) {
			return
		}
		switch r.Consistency.Text {
		case "leased":
			p.leased(r, t)
		case "eventual":
			p.eventual(r, t)
		}
	})
}

// byDefault reports whether the consistency of r is the one in defaults: where
// that can be had is good enough.
func (p *pass) byDefault(r *rulefile.Rule) bool {
	return slices.ContainsFunc(p.file.Rules, func(o *rulefile.Rule) bool { return o != r && o.Consistency == r.Consistency })
}

func (p *pass) leased(r *rulefile.Rule, t rulefile.Terms) {
	if t.Concurrency != nil {
		p.warn(t.Concurrency.Pos, "slots cannot be leased ahead, so "+diag.Quote(r.Name.Text)+" is strict", "write `consistency: strict`, or remove it")
	}
	for _, l := range knownLimits(t) {
		switch l.Spec.Algorithm {
		case tidegate.TokenBucket, tidegate.FixedWindow, tidegate.Quota:
		default:
			p.warn(l.Pos, fmt.Sprintf("%s is counted by %s, which cannot be leased ahead, so %s is strict", l.label(), l.Spec.Algorithm, diag.Quote(r.Name.Text)),
				"write `{ rate: …, algorithm: token_bucket }`, or remove `consistency: leased`")
			continue
		}
		if need := perInstance * max(1, p.file.Instances); capacity(l.Spec) < float64(need) {
			p.warn(l.Pos, fmt.Sprintf("%s holds %.0f at once, and leases for %s need room for %d, so %s is strict", l.label(), capacity(l.Spec), instances(p.file.Instances), need, diag.Quote(r.Name.Text)),
				fmt.Sprintf("give it a burst of %d or more, or remove `consistency: leased`", need))
		}
	}
}

func (p *pass) eventual(r *rulefile.Rule, t rulefile.Terms) {
	if t.Concurrency != nil {
		p.warn(t.Concurrency.Pos, "slots cannot be counted eventually, so "+diag.Quote(r.Name.Text)+" is strict", "write `consistency: strict`, or remove it")
	}
	for _, l := range knownLimits(t) {
		if l.Spec.Algorithm == tidegate.SlidingLog || l.Spec.Algorithm == tidegate.LeakyBucket {
			p.warn(l.Pos, fmt.Sprintf("%s is counted by %s, of which nodes cannot exchange counts, so %s is strict", l.label(), l.Spec.Algorithm, diag.Quote(r.Name.Text)),
				"write `{ rate: …, algorithm: sub_windows }`, or remove `consistency: eventual`")
		}
	}
}

func instances(n int) string {
	if n <= 1 {
		return "one instance"
	}
	return fmt.Sprintf("%d instances", n)
}
