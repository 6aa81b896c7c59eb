package lint

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// quotaDoor finds limits that Envoy's quota service cannot divide; it denies what they limit.
func quotaDoor(p *pass) {
	if p.partly = !p.quotas; p.partly {
		return
	}
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		name := diag.Quote(r.Name.Text)
		switch {
		case r.Deny || t.Limits != nil && t.Limits.Unlimited:
		case len(r.SetAside) > 0:
			p.warn(r.SetAside[0].Class.Pos, name+" sets a share aside, so the quota service denies what has to leave it: proxies take their parts ahead",
				"remove `set_aside`, or let Envoy ask about each request by its rate limit service")
		case t.Limits == nil || len(t.Limits.All) > 1 || t.Quota != nil || t.Concurrency != nil || r.Block > 0:
			p.warn(r.Name.Pos, name+" is more than one token_bucket, so the quota service denies what it limits",
				"give it one limit alone, `{ rate: …, algorithm: token_bucket }`")
		default:
			l := t.Limits.All[0]
			p.notDivided(l.Pos, diag.Quote(l.Text), l.Spec.Algorithm, r.Consistency.Text == "split", "`{ rate: …, algorithm: token_bucket }`")
		}
	})
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		l := d.Limit
		switch {
		case l == nil || l.Unlimited || d.Shadow:
		case len(l.Own.Limits) > 1 || len(l.Own.Limits) == 1 && l.Unit != "":
			p.warn(l.Pos, "the limits of "+entry(d)+" are more than one token_bucket, so the quota service denies what they limit", "give it one limit")
		case len(l.Own.Limits) == 1:
			one := l.Own.Limits[0]
			p.notDivided(one.Pos, "the limit of "+entry(d), one.Spec.Algorithm, l.Own.Consistency == tidegate.Split, "`tidegate: { algorithm: token_bucket }`")
		case l.Requests > 0:
			algorithm := l.Own.Algorithm
			if algorithm == tidegate.Auto {
				algorithm = tidegate.FixedWindow
			}
			p.notDivided(l.Pos, "the limit of "+entry(d), algorithm, l.Own.Consistency == tidegate.Split, "`tidegate: { algorithm: token_bucket }`")
		}
	})
}

// notDivided reports a limit that is not a token bucket, or is already divided.
func (p *pass) notDivided(pos diag.Pos, what string, a tidegate.Algorithm, split bool, write string) {
	switch {
	case a != tidegate.TokenBucket:
		p.warn(pos, fmt.Sprintf("%s is counted by %s, so the quota service denies what it limits: it divides a token_bucket", what, a), "write "+write)
	case split:
		p.warn(pos, what+" is split among instances, so the quota service denies what it limits: it divides it itself", "remove `consistency: split`")
	}
}
