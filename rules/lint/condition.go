package lint

import (
	"net/netip"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// tests reports whether t passes for value.
func (p *pass) tests(t rulefile.Test, value string) bool {
	return p.covers(t, rulefile.Test{Kind: rulefile.TestLiteral, Text: value})
}

// covers reports whether a passes whenever b does; b is not a list whose values are known. It
// returns false if it cannot tell.
func (p *pass) covers(a, b rulefile.Test) bool {
	p.step(1)
	if a.Kind == rulefile.TestAbsent || b.Kind == rulefile.TestAbsent {
		return a.Kind == b.Kind
	}
	if a.Kind == rulefile.TestPresent || a.Kind == b.Kind && a.Text == b.Text && a.Prefix == b.Prefix {
		return true
	}
	if values, ok := p.listed(a); ok {
		return slices.ContainsFunc(values, func(v rulefile.Test) bool { return p.covers(v, b) })
	}
	switch {
	case a.Kind == rulefile.TestGlob && b.Kind == rulefile.TestLiteral:
		return globMatch(a.Text, b.Text)
	case a.Kind == rulefile.TestPrefix:
		inner, ok := network(b)
		return ok && a.Prefix.Overlaps(inner) && a.Prefix.Bits() <= inner.Bits()
	}
	return false
}

// excludes reports whether no value passes both. It returns false if it cannot tell.
func (p *pass) excludes(a, b rulefile.Test) bool {
	p.step(1)
	if a.Kind == rulefile.TestAbsent || b.Kind == rulefile.TestAbsent {
		return a.Kind != b.Kind
	}
	for _, pair := range [][2]rulefile.Test{{a, b}, {b, a}} {
		if values, ok := p.listed(pair[0]); ok {
			return all(values, func(v rulefile.Test) bool { return p.excludes(v, pair[1]) })
		}
	}
	one, isOne := network(a)
	other, isOther := network(b)
	switch {
	case isOne && isOther:
		return !one.Overlaps(other)
	case a.Kind == rulefile.TestLiteral && b.Kind == rulefile.TestLiteral:
		return a.Text != b.Text
	case a.Kind == rulefile.TestLiteral && b.Kind == rulefile.TestGlob:
		return !globMatch(b.Text, a.Text)
	case a.Kind == rulefile.TestGlob && b.Kind == rulefile.TestLiteral:
		return !globMatch(a.Text, b.Text)
	}
	return false
}

// listed returns the values of the list that t names, if they are in the rule file: other files
// change.
func (p *pass) listed(t rulefile.Test) ([]rulefile.Test, bool) {
	if t.Kind != rulefile.TestIn {
		return nil, false
	}
	values, ok := p.lists[t.Text]
	return values, ok
}

// expand replaces lists by their values, where these are known.
func (p *pass) expand(tests []rulefile.Test) []rulefile.Test {
	var values []rulefile.Test
	for _, t := range tests {
		p.step(1)
		if listed, ok := p.listed(t); ok {
			p.step(len(listed))
			values = append(values, listed...)
		} else {
			values = append(values, t)
		}
	}
	return values
}

// network returns the addresses that t passes for, if t is about addresses.
func network(t rulefile.Test) (netip.Prefix, bool) {
	if t.Kind == rulefile.TestPrefix {
		return t.Prefix, true
	}
	addr, err := netip.ParseAddr(t.Text)
	if t.Kind != rulefile.TestLiteral || err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// implies reports whether conditions hold whenever those of given do. It returns false if it cannot
// tell.
func (p *pass) implies(given, conditions []rulefile.Condition) bool {
	p.step(1 + len(given)*len(conditions))
	return all(conditions, func(c rulefile.Condition) bool {
		return slices.ContainsFunc(given, func(g rulefile.Condition) bool {
			return g.Name.Text == c.Name.Text && all(p.expand(g.Any), func(small rulefile.Test) bool {
				return slices.ContainsFunc(c.Any, func(large rulefile.Test) bool { return p.covers(large, small) })
			})
		})
	})
}

// whenUnless is the when and the unless of a rule, a branch, a class or an exemption.
type whenUnless struct{ when, unless []rulefile.Condition }

// never reports whether a and b cannot hold at the same time. never(a, a) reports whether a cannot
// hold at all.
func (p *pass) never(a, b whenUnless) bool {
	if len(a.unless) > 0 && p.implies(b.when, a.unless) || len(b.unless) > 0 && p.implies(a.when, b.unless) {
		return true
	}
	for _, x := range a.when {
		for _, y := range b.when {
			if x.Name.Text == y.Name.Text && all(x.Any, func(s rulefile.Test) bool {
				return all(y.Any, func(t rulefile.Test) bool { return p.excludes(s, t) })
			}) {
				return true
			}
		}
	}
	return false
}

// all reports whether yes returns true for every item.
func all[T any](items []T, yes func(T) bool) bool {
	return !slices.ContainsFunc(items, func(item T) bool { return !yes(item) })
}

// globMatch reports whether the whole of s fits pattern, in which * stands for
// anything.
func globMatch(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
