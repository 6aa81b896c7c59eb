package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

const verifiedHint = "take it from where it is verified: a claim of the token (`jwt.NAME`), an attribute of the API key (`api_key.NAME`), or a header that your own proxy sets (`header NAME`)"

func tierByClaimedValue(p *pass) {
	p.claimedClasses()
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled || r.Deny {
			continue
		}
		p.claimedUnless(r)
		for i := range r.For {
			p.claimedBranch(r, &r.For[i])
		}
	}
}

// claimedClasses finds classes that a caller can get into by a value that it claims. The last class
// is for all others.
func (p *pass) claimedClasses() {
	for i, c := range p.file.Classes {
		if i == len(p.file.Classes)-1 {
			break
		}
		if how := p.claim(whenUnless{c.When, c.Unless}, asserts); how.effort != cannot {
			p.report(how.name.Pos, how.severity(), "a request is of the class "+diag.Quote(c.Name.Text)+" if its caller "+how.deed+how.andSo(), verifiedHint)
		}
	}
}

func (p *pass) claimedBranch(r *rulefile.Rule, b *rulefile.Branch) {
	c := p.claim(whenUnless{b.When, b.Unless}, asserts)
	if c.effort == cannot || !generous(r.Terms, b.Terms) && !(b.Whole && lifts(r.Terms, b.Terms)) {
		return
	}
	if b.Made && p.claimed[c.name.Pos] { // one of several tiers
		return
	}
	p.claimed[c.name.Pos] = true
	hint := verifiedHint
	if strings.HasPrefix(c.deed, "leaves") {
		hint = "give more only to callers that show something: `when: { " + c.name.Text + ": present }`, or a value"
	}
	p.report(c.name.Pos, c.severity(), diag.Quote(r.Name.Text)+" gives more to a caller that "+c.deed+c.andSo(), hint)
}

// claimedUnless finds a rule that does not apply to callers who know a certain value. A rule that
// does not apply to callers with any value leaves them to other rules; escapable-route checks
// whether there is one.
func (p *pass) claimedUnless(r *rulefile.Rule) {
	if c := p.claim(whenUnless{when: r.Unless}, asserts); c.effort == secret || c.effort == guess {
		p.report(c.name.Pos, c.severity(), diag.Quote(r.Name.Text)+" does not apply to a caller that "+c.deed+c.andSo(), verifiedHint)
	}
}

// says reports whether own is true for one of the sources of name.
func (p *pass) says(name string, own func(rulefile.Source) bool) bool {
	for _, s := range p.sources(name) {
		if own(s) {
			return true
		}
	}
	return false
}

// generous reports whether b, which replaces t, admits more than t.
func generous(t, b rulefile.Terms) bool {
	if b.Limits != nil && t.Limits != nil && !t.Limits.Unlimited {
		if b.Limits.Unlimited {
			return true
		}
		for _, l := range t.Limits.All {
			if !heldBy(l, b.Limits.All) {
				return true
			}
		}
	}
	switch {
	case b.Quota != nil && t.Quota != nil && (b.Quota.Spec.Calendar != t.Quota.Spec.Calendar || b.Quota.Spec.Events > t.Quota.Spec.Events):
		return true
	case b.Concurrency != nil && t.Concurrency != nil && b.Concurrency.Spec.Events > t.Concurrency.Spec.Events:
		return true
	case raised(b.Over) && (!raised(t.Over) || b.Over.Soft > t.Over.Soft):
		return true
	}
	return b.Cost != nil && b.Cost.Fixed > 0 && t.Cost != nil && b.Cost.Fixed < t.Cost.Fixed
}

// lifts reports whether b, which replaces t, lacks a kind of limit that t has.
func lifts(t, b rulefile.Terms) bool {
	return t.Limits != nil && b.Limits == nil || t.Quota != nil && b.Quota == nil || t.Concurrency != nil && b.Concurrency == nil
}

// heldBy reports whether one of limits is as strict as l.
func heldBy(l rulefile.Limit, limits []rulefile.Limit) bool {
	for _, o := range limits {
		if o.From != nil {
			o.Spec.Events = o.From.Max
		}
		same := o.Spec.Algorithm == l.Spec.Algorithm && o.Spec.Period == l.Spec.Period
		if same && o.Spec.Events <= l.Spec.Events && capacity(o.Spec) <= capacity(l.Spec) || makesRedundant(o.Spec, l.Spec) {
			return true
		}
	}
	return false
}

// raised reports whether o admits more than the limits say.
func raised(o *rulefile.Over) bool { return o != nil && (o.Soft > 0 || o.Elastic != nil) }
