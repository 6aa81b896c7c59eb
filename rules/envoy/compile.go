package envoy

import (
	"errors"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

// compiler turns files without errors into a Set.
type compiler struct {
	written  *domainfile.File
	domain   *Domain // being compiled
	problems diag.Tally
}

func (c *compiler) set() *Set {
	s := &Set{domains: make(map[string]*Domain)}
	for _, w := range c.written.Domains {
		c.domain = &Domain{name: w.Name.Text, atomic: w.Atomic}
		c.domain.level = c.level(w.Descriptors, nil)
		s.domains[c.domain.name] = c.domain
	}
	return s
}

// level compiles descriptors that are beside each other, below path.
func (c *compiler) level(all []*domainfile.Descriptor, path []*domainfile.Descriptor) level {
	l := make(level)
	for _, d := range all {
		below := append(path[:len(path):len(path)], d)
		n := &node{rule: c.rule(below)}
		l.add(d, n)
		n.next = c.level(d.Descriptors, below)
	}
	return l
}

func (l level) add(d *domainfile.Descriptor, n *node) {
	of := l[d.Key.Text]
	if of == nil {
		of = &named{exact: make(map[string]*node)}
		l[d.Key.Text] = of
	}
	switch value := d.Value.Text; {
	case value == "":
		of.any = n
	case d.HasStar():
		of.stars = append(of.stars, star{newPattern(value), n})
		of.exact[value] = n // a request may send the pattern itself
	default:
		of.exact[value] = n
	}
}

// rule compiles the rule of the last descriptor of path; nil if it has none.
func (c *compiler) rule(path []*domainfile.Descriptor) *Rule {
	d := path[len(path)-1]
	if d.Limit == nil {
		return nil
	}
	r := &Rule{
		Path: domainfile.Path(c.domain.name, path...), Name: d.Limit.Name.Text, Unlimited: d.Limit.Unlimited,
		Shadow: d.Shadow, Quota: d.Quota, Settle: d.Limit.Own.Settle, Metadata: d.Metadata, Pos: d.Key.Pos,
		domain: c.domain, detail: d.Detailed, metric: d.Detailed,
	}
	for _, name := range d.Limit.Replaces {
		r.Replaces = append(r.Replaces, name.Text)
	}
	for i, d := range path {
		r.steps = append(r.steps, step{d.Key.Text, d.Value.Text, d.Shared, d.Metric})
		if d.Value.Text == "" || d.HasStar() && !d.Shared {
			r.vary = append(r.vary, i)
			r.metric = r.metric || d.Metric
		}
	}
	if !r.Unlimited {
		c.limits(r, d.Limit)
	}
	c.domain.rules = append(c.domain.rules, r)
	return r
}

// limits makes the limits of a rule: that of unit and requests_per_unit, then those of our own.
func (c *compiler) limits(r *Rule, w *domainfile.RateLimit) {
	own := &w.Own
	terms := termsOf(r.Path)
	terms.Handling.Consistency = own.Consistency
	base := tidegate.Spec{Name: r.Path, Scope: scope(c.domain.name, r.steps, false), Terms: terms}
	algorithm := own.Algorithm
	if algorithm == tidegate.Auto {
		algorithm = tidegate.FixedWindow
	}
	rejected := algorithm == tidegate.FixedWindow && len(own.Limits) == 0
	if own.CountRejected != nil {
		rejected = *own.CountRejected
	}
	r.CountRejected = rejected && algorithm == tidegate.FixedWindow
	inLog := rejected && algorithm == tidegate.SlidingLog
	if w.Unit != "" {
		t := told{w.Requests, unitNamed(w.Unit)}
		spec := counted(t, base)
		if own.Algorithm != tidegate.Auto && t.requests > 0 {
			spec.Algorithm, spec.Burst, spec.CountRejected = algorithm, own.Burst, inLog
			spec.Events, spec.Period = int64(t.requests), t.unit.Period()
		}
		c.hold(r, spec, t, w.RequestsPos)
	}
	for _, l := range own.Limits {
		spec := base
		spec.Events, spec.Period, spec.Algorithm, spec.Burst = l.Spec.Events, l.Spec.Period, l.Spec.Algorithm, l.Spec.Burst
		spec.Parts, spec.Ceiling, spec.CountRejected = l.Spec.Parts, l.Spec.Ceiling, l.Spec.CountRejected
		if spec.Algorithm == tidegate.Auto {
			spec.Algorithm, spec.Burst, spec.CountRejected = algorithm, own.Burst, inLog
		}
		c.hold(r, spec, told{uint32(spec.Events), unitOf(spec.Period)}, l.Pos)
	}
}

// hold adds a limit to those of r, or reports why there cannot be such a limit.
func (c *compiler) hold(r *Rule, spec tidegate.Spec, t told, pos Pos) {
	if spec.Algorithm == tidegate.LeakyBucket {
		c.fail(pos, "a leaky bucket makes requests wait, which Envoy does not do", "write `algorithm: token_bucket`")
		return
	}
	if shared := spec.Terms.Handling.Consistency; !shared.Suits(spec.Algorithm) {
		c.fail(pos, spec.Algorithm.String()+" cannot be "+shared.String(), domainfile.FittingHint(shared))
		return
	}
	limit, err := tidegate.NewLimit(spec)
	if err != nil {
		c.fail(pos, reason(err), "choose another algorithm or other numbers")
		return
	}
	for _, other := range r.Limits {
		if other.Identity() == limit.Identity() {
			c.fail(pos, "two limits of the descriptor have the same period and algorithm, so that they would be counted together", "remove one of them")
			return
		}
	}
	r.hold(limit, t)
}

func (c *compiler) fail(pos Pos, message, hint string) {
	c.problems.Add(c.written.Problem(pos, diag.Error, message, hint))
}

// reason returns why NewLimit failed, without the name of the limit.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
