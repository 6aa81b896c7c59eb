package lint

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// route is a kind of request that callers can send: one pattern with one method. Host and method
// are "" if every request may have another.
type route struct {
	shape
	pattern   rulefile.Pattern
	rules     []*rulefile.Rule // enforced rules that hold for all of it
	scenarios []scenario       // in which callers can request it
}

// commonMethods are those that a caller tries if rules are about some of them.
var commonMethods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// routes returns what callers of r can request.
func (p *pass) routes(r *rulefile.Rule) []*route {
	if len(r.Match) == 0 {
		return p.routesOf(rulefile.Pattern{Path: "/"})
	}
	var all []*route
	for _, m := range r.Match {
		all = append(all, p.routesOf(m)...)
	}
	return all
}

// routesOf returns the routes of a pattern. They are made once for all rules that have it.
func (p *pass) routesOf(m rulefile.Pattern) []*route {
	if all, ok := p.asked[m.Text]; ok {
		return all
	}
	s := shapeOf(m)
	over := p.over(s)
	methods := []string{s.method}
	if s.method == "" {
		methods = p.methods(over)
	}
	var all []*route
	for _, method := range methods {
		rt := &route{shape: s, pattern: m}
		rt.method = method
		for _, r := range over {
			if _, ok := p.seen(r, rt); ok {
				rt.rules = append(rt.rules, r)
			}
		}
		rt.scenarios = p.scenarios(rt.rules)
		all = append(all, rt)
	}
	p.asked[m.Text] = all
	return all
}

// over returns the enforced rules that hold for all paths and hosts of s.
func (p *pass) over(s shape) []*rulefile.Rule {
	near := slices.Clone(p.byFirst[""])
	if s.first() != "" {
		near = append(near, p.byFirst[s.first()]...)
	}
	slices.Sort(near)
	var rules []*rulefile.Rule
	for _, i := range slices.Compact(near) {
		r := p.file.Rules[i]
		p.step(1 + len(p.shapes[r]))
		if slices.ContainsFunc(p.shapes[r], func(o shape) bool {
			o.method = ""
			return o.contains(s)
		}) {
			rules = append(rules, r)
		}
	}
	return rules
}

// methods returns the methods to try on a path: "", which is an invented one, and, if rules are
// about methods, the common ones and theirs.
func (p *pass) methods(rules []*rulefile.Rule) []string {
	var named []string
	cares := false
	for _, r := range rules {
		p.step(1 + len(p.shapes[r]) + len(r.For))
		for _, s := range p.shapes[r] {
			if s.method != "" {
				named = append(named, s.method)
			}
		}
		cares = cares || slices.ContainsFunc(namesOf(r), func(name string) bool {
			return slices.ContainsFunc(p.sources(name), func(s rulefile.Source) bool { return s.Kind == rulefile.SourceMethod })
		})
	}
	if len(named) == 0 && !cares {
		return []string{""}
	}
	all := slices.Clone(commonMethods)
	for _, method := range named {
		if !slices.Contains(all, method) {
			all = append(all, method)
		}
	}
	return append(all, "")
}

// at is a route as one rule sees it: with the rule's own pattern for it, which has the wildcards.
type at struct {
	*route
	own rulefile.Pattern
}

// pins reports whether s is a wildcard of the rule's pattern for which the route's pattern has a
// fixed text: then all requests for the route have the same value.
func (a at) pins(s rulefile.Source) bool {
	if s.Kind != rulefile.SourcePathWildcard {
		return false
	}
	for i, part := range strings.Split(strings.TrimPrefix(a.own.Path, "/"), "/") {
		switch part {
		case "{" + s.Arg + "}":
			return !a.segments[i].any
		case "{" + s.Arg + "...}":
			return !a.below && !slices.ContainsFunc(a.segments[i:], func(own segment) bool { return own.any })
		}
	}
	return false
}

// seen returns rt with the first pattern of r that holds for all of it; false if none does.
func (p *pass) seen(r *rulefile.Rule, rt *route) (at, bool) {
	p.step(1 + len(p.shapes[r]))
	i := slices.IndexFunc(p.shapes[r], func(s shape) bool { return s.contains(rt.shape) })
	if i < 0 {
		return at{}, false
	}
	a := at{route: rt}
	if len(r.Match) > 0 {
		a.own = r.Match[i]
	}
	return a, true
}

// label returns how messages name the route.
func (rt *route) label() string {
	if rt.method != rt.pattern.Method {
		return diag.Quote(rt.method + " " + rt.pattern.Host + rt.pattern.Path)
	}
	return rt.written()
}

// written returns the pattern as it is in the file, if it is there.
func (rt *route) written() string {
	if rt.pattern.Text == "" {
		return diag.Quote(rt.pattern.Path)
	}
	return diag.Quote(rt.pattern.Text)
}
