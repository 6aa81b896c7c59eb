package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func neverApplies(p *pass) {
	replaced := p.replaced()
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled {
			continue
		}
		own := whenUnless{r.When, r.Unless}
		if p.never(own, own) {
			p.warn(r.Name.Pos, "the conditions of "+diag.Quote(r.Name.Text)+" exclude each other, so it never applies", "remove one of them, or make two rules")
			continue
		}
		if p.alwaysExempt(r) && !p.exemptsAll() {
			p.warn(r.Name.Pos, diag.Quote(r.Name.Text)+" never applies, because all its requests are exempt", "remove the rule, or narrow the `match` under `exempt`")
			continue
		}
		for _, o := range p.file.Rules {
			p.step(1 + len(o.InsteadOf))
			if o == r || !o.Deny && !replaces(o, r) || !p.applies(o, r) {
				continue
			}
			if replaces(o, r) {
				p.warn(r.Name.Pos, diag.Quote(r.Name.Text)+" never applies, because "+diag.Quote(o.Name.Text)+" applies to all the same requests, instead of it", "remove the rule, or narrow the `match` of "+diag.Quote(o.Name.Text))
				break
			}
			if !r.Deny && !replaced[o.Name.Text] && !slices.ContainsFunc(p.shapes[o], shape.everything) {
				p.warn(r.Name.Pos, diag.Quote(r.Name.Text)+" never decides, because "+diag.Quote(o.Name.Text)+" refuses all the same requests", "remove the rule, or narrow the `match` of "+diag.Quote(o.Name.Text))
				break
			}
		}
	}
}

// replaced returns the names of the rules that other rules replace for some requests.
func (p *pass) replaced() map[string]bool {
	names := make(map[string]bool)
	for _, r := range p.file.Rules {
		for _, name := range r.InsteadOf {
			names[name.Text] = names[name.Text] || enforced(r)
		}
	}
	return names
}

// exemptsAll reports whether every request is exempt; exempt-too-wide reports that.
func (p *pass) exemptsAll() bool {
	return slices.ContainsFunc(p.file.Exempt, func(e rulefile.Exempt) bool {
		return unconditional(&e) && slices.ContainsFunc(shapes(e.Match), shape.everything)
	})
}

// applies reports whether o applies to every request that r holds for.
func (p *pass) applies(o, r *rulefile.Rule) bool {
	if !enforced(o) || o.Share < whole || len(o.When) > 0 || len(o.Unless) > 0 {
		return false
	}
	skips := slices.ContainsFunc(o.Per, func(per rulefile.Word) bool { return p.missing(o, per.Text) == rulefile.MissingSkip })
	return !skips && p.allContain(p.shapes[o], p.shapes[r])
}

// whole is a Share of all keys.
const whole = 10_000
