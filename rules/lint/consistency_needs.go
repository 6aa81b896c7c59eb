package lint

import (
	"fmt"
	"math"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func consistencyNeeds(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		// What the file sets for all rules applies only where it can.
		if r.Deny || r.Consistency == p.file.Consistency {
			return
		}
		switch r.Consistency.Text {
		case "leased", "eventual", "split":
			p.unfit(r, t)
			if !r.Queues {
				p.tooSmall(r, t)
			}
		}
	})
	for _, r := range p.file.Rules {
		if w := r.OnPartition; w.Text != "" && w != p.file.OnPartition && r.Mode != rulefile.Disabled && r.Consistency.Text != tidegate.Eventual.String() {
			p.warn(w.Pos, "regions share limits with `consistency: eventual`, so each region has the whole limit of "+diag.Quote(r.Name.Text),
				"write `consistency: eventual`, or remove `on_partition`")
		}
		if r.Mode == rulefile.Disabled || r.Consistency == p.file.Consistency || !slices.Contains([]string{"leased", "eventual", "split"}, r.Consistency.Text) {
			continue
		}
		if r.Candidate != nil {
			p.unfitAlgorithm(r, *r.Candidate)
		}
		if r.Block > 0 {
			p.warn(r.BlockPos, "a block is looked up in the shared store with every request, so "+diag.Quote(r.Name.Text)+" saves no calls by being "+r.Consistency.Text,
				"remove `block`, or write `consistency: strict`")
		}
	}
}

// unfit reports limits that cannot be shared in the way that the rule asks for.
func (p *pass) unfit(r *rulefile.Rule, t rulefile.Terms) {
	mode, name := r.Consistency.Text, diag.Quote(r.Name.Text)
	if t.Queue != nil {
		p.fail(t.Queue.Pos, "requests that wait for their turn cannot be "+mode+", so "+name+" is strict", "remove `queue`, or write `consistency: strict`")
	}
	if t.Concurrency != nil {
		p.fail(t.Concurrency.Pos, "slots cannot be "+mode+", so those of "+name+" are strict", "put `concurrency` into a rule of its own, without `consistency`")
	}
	if t.Limits == nil {
		return
	}
	for _, l := range t.Limits.All {
		p.unfitAlgorithm(r, l)
	}
}

func (p *pass) unfitAlgorithm(r *rulefile.Rule, l rulefile.Limit) {
	mode, usual := r.Consistency.Text, tidegate.TokenBucket
	suits := tidegate.Leased.Suits(l.Spec.Algorithm)
	if mode == tidegate.Eventual.String() {
		suits, usual = tidegate.Eventual.Suits(l.Spec.Algorithm), tidegate.SubWindows
	}
	switch {
	case suits:
	case !l.Auto:
		p.fail(l.Pos, fmt.Sprintf("%s is counted by %s, which cannot be %s, so it is strict", diag.Quote(l.Text), l.Spec.Algorithm, mode),
			"leave the algorithm out, for "+usual.String()+", or write `consistency: strict`")
	case !r.Queues:
		p.warn(l.Pos, fmt.Sprintf("%s is too slow for a token bucket, so it is counted by %s and strict", diag.Quote(l.Text), l.Spec.Algorithm),
			"use a quota, or remove `consistency: "+mode+"`")
	}
}

// tooSmall reports limits with too few events to be shared among the instances in that way.
func (p *pass) tooSmall(r *rulefile.Rule, t rulefile.Terms) {
	for _, l := range knownLimits(t) {
		limit, err := tidegate.NewLimit(l.Spec)
		n := p.file.Instances
		if r.Consistency.Text == "eventual" {
			if err == nil && tidegate.Eventual.Suits(l.Spec.Algorithm) && limit.Capacity() < int64(n) {
				p.warn(l.Pos, fmt.Sprintf("%s has %d at once for %s, each of which may admit one before it hears of the others", l.label(), limit.Capacity(), rulefile.Instances(n)),
					fmt.Sprintf("%s of %d or more, or remove `consistency: eventual`", raise(limit), n))
			}
			continue
		}
		if err != nil || !tidegate.Leased.Suits(l.Spec.Algorithm) {
			continue
		}
		if r.Consistency.Text == "split" {
			if limit.Capacity() < int64(n) {
				p.warn(l.Pos, fmt.Sprintf("%s has %d at once for %s, so some have nothing to give while others have", l.label(), limit.Capacity(), rulefile.Instances(n)),
					fmt.Sprintf("%s of %d or more, or remove `consistency: split`", raise(limit), n))
			}
			continue
		}
		if _, err := rulefile.LeaseOf(limit, n); err != nil {
			p.warn(l.Pos, l.label()+" is strict: "+err.Error(), leaseHint(limit, n)+"remove `consistency: leased`")
		}
	}
}

// raise returns how to raise the capacity of a limit.
func raise(l *tidegate.Limit) string {
	if l.Algorithm == tidegate.TokenBucket {
		return "give it a burst"
	}
	return "give it a limit"
}

// leaseHint returns the burst, rate or period with which l could be leased, as the first half of a
// choice; "" if there is none.
func leaseHint(l *tidegate.Limit, instances int) string {
	perSecond, need := rulefile.RateOf(l), rulefile.LeaseEach*float64(max(1, instances))
	if l.Algorithm != tidegate.TokenBucket {
		life := rulefile.MaxLease
		if l.Period > 0 {
			life = min(life, l.Period/2)
		}
		if life < rulefile.MinLease {
			return fmt.Sprintf("make the period %s or longer, or ", 2*rulefile.MinLease)
		}
		events := math.Ceil(need / life.Seconds() * float64(l.Events) / perSecond)
		if events > tidegate.MaxCount {
			return ""
		}
		return fmt.Sprintf("raise the limit to %.0f or more, or ", events)
	}
	if rate := math.Ceil(need / rulefile.MaxLease.Seconds()); perSecond < rate {
		return fmt.Sprintf("raise the rate to %.0f a second or more, or ", rate)
	}
	// The lifetime that gives each instance its events decides, if it is above the minimum.
	burst := 2 * math.Ceil(perSecond*max(rulefile.MinLease.Seconds(), need/perSecond))
	spec := l.Spec
	spec.Burst = int64(burst)
	if enough, err := tidegate.NewLimit(spec); err == nil {
		if _, err := rulefile.LeaseOf(enough, instances); err != nil {
			burst += 2 // lifetimes are whole nanoseconds
		}
	}
	return fmt.Sprintf("%s of %.0f or more, or ", raise(l), burst)
}
