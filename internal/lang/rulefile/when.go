package rulefile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const whenHint = "write names with what they must be: `when: { role: [premium, admin], ip: in partners }`"

// scope is what conditions can rely on: the patterns of their rule.
type scope struct {
	patterns []Pattern
	unsure   bool // patterns may be missing because of a mistake, so nothing is reported about them
}

// hasText reports whether a pattern is written exactly as text.
func (sc *scope) hasText(text string) bool {
	return slices.ContainsFunc(sc.patterns, func(p Pattern) bool { return p.Text == text })
}

// hasWildcard reports whether a pattern has a wildcard of that name.
func (sc *scope) hasWildcard(name string) bool {
	return slices.ContainsFunc(sc.patterns, func(p Pattern) bool { return slices.Contains(p.names(), name) })
}

// conditions reads when or unless.
func (d *decoder) conditions(o object, word string, sc scope) []Condition {
	n := o.get(word)
	if n == nil {
		return nil
	}
	if n.Kind != yamltree.Map {
		d.fail(n.Pos, diag.Quote(word)+" is a map of names, and this is "+n.What(), strings.Replace(whenHint, "when", word, 1))
		return nil
	}
	if len(n.Fields) == 0 {
		d.fail(n.Pos, diag.Quote(word)+" is empty", strings.Replace(whenHint, "when", word, 1))
	}
	var all []Condition
	for _, f := range n.Fields {
		if c, ok := d.condition(f, sc); ok {
			all = append(all, c)
		}
	}
	return all
}

func (d *decoder) condition(f yamltree.Field, sc scope) (Condition, bool) {
	id, ok := d.known(f.Key, "a condition")
	if !ok {
		return Condition{}, false
	}
	name := f.Key.Value
	c := Condition{Name: Word{name, f.Key.Pos}}
	if f.Value.Kind == yamltree.Null {
		d.fail(f.Key.Pos, "nothing is written after "+diag.Quote(name+":"), "write what "+diag.Quote(name)+" must be, or `present` or `absent`")
		return c, false
	}
	if id.is(SourceEveryone) {
		d.fail(f.Key.Pos, "`everyone` is the same for every request, so it cannot be a condition", "write who is meant, such as `role: admin`, or remove it")
		return c, false
	}
	if !d.findable(f.Key.Pos, id, sc) {
		return c, false
	}
	const hint = "write a value, a list, `\"*-bot\"`, a network, `in LIST`, `present` or `absent`"
	what := "what " + diag.Quote(name) + " must be"
	for _, item := range d.oneOrMore(f.Value, what, hint) {
		text, ok := d.text(item, what, hint)
		if !ok {
			continue
		}
		if t, ok := d.test(Word{text, item.Pos}, id, sc); ok {
			c.Any = append(c.Any, t)
		}
	}
	return c, len(c.Any) > 0
}

// findable reports whether a request of the rule can have the identity. If none can, that is reported
// as a mistake at pos.
func (d *decoder) findable(pos diag.Pos, id Identity, sc scope) bool {
	if sc.unsure || len(id.Sources) != 1 {
		return true
	}
	s := id.Sources[0]
	switch s.Kind {
	case SourceRoute:
		if len(sc.patterns) == 0 {
			d.fail(pos, "`route` is the pattern that matched, and there is no `match`", "write `match: [/api/, /search]`, or count by something else")
			return false
		}
	case SourcePathWildcard:
		if !sc.hasWildcard(s.Arg) {
			d.fail(pos, fmt.Sprintf("%s is %s, and no pattern of `match` has {%s}", diag.Quote(id.Name.Text), diag.Quote(s.Text), s.Arg),
				fmt.Sprintf("write the wildcard into the pattern, as in `match: \"/orders/{%s}\"`", s.Arg))
			return false
		}
	}
	return true
}

// is reports whether k is the only source.
func (i Identity) is(k SourceKind) bool { return len(i.Sources) == 1 && i.Sources[0].Kind == k }

// test reads one value of a condition on id.
func (d *decoder) test(w Word, id Identity, sc scope) (Test, bool) {
	first, rest, _ := strings.Cut(w.Text, " ")
	switch {
	case w.Text == "absent" || w.Text == "present":
		return d.presence(w, id)
	case first == "in":
		return d.in(Word{strings.TrimSpace(rest), w.Pos}, id)
	case first == "not" || strings.HasPrefix(first, "!"):
		d.fail(w.Pos, "a value cannot be negated: "+diag.Quote(w.Text), "write the condition under `unless:`, without the negation")
		return Test{}, false
	}
	t, wrong := parseValue(w)
	if wrong == (mistake{}) {
		t, wrong = fitting(t, id, sc)
	}
	if wrong != (mistake{}) {
		d.fail(w.Pos, wrong.message, wrong.hint)
		return t, false
	}
	if t.Kind != TestPrefix {
		t.Text = id.spelled(t.Text)
	}
	return t, true
}

// presence reads the words absent and present.
func (d *decoder) presence(w Word, id Identity) (Test, bool) {
	if len(id.Sources) > 0 && id.Sources[len(id.Sources)-1].always() {
		holds := map[string]string{"absent": "never", "present": "always"}[w.Text]
		d.fail(w.Pos, "every request has "+diag.Quote(id.Name.Text)+", so "+diag.Quote(w.Text)+" "+holds+" holds", "take the condition out, or write a value")
		return Test{}, false
	}
	t := Test{Kind: TestAbsent, Text: w.Text, Pos: w.Pos}
	if w.Text == "present" {
		t.Kind = TestPresent
	}
	return t, true
}

// in reads a test against the list that w names. If id is the address of the client, all values of the
// list must be addresses or networks.
func (d *decoder) in(w Word, id Identity) (Test, bool) {
	t := Test{Kind: TestIn, Text: w.Text, Pos: w.Pos}
	l := d.list(w.Text)
	if l == nil {
		var names []string
		for _, other := range d.file.Lists {
			names = append(names, other.Name.Text)
		}
		hint := "say it at the top of the file: `lists: { partners: [203.0.113.0/24] }`, then write `in partners`"
		if near := d.nearest(w.Text, names); near != "" {
			hint = "did you mean " + diag.Quote("in "+near) + "?"
		}
		d.fail(w.Pos, "there is no list "+diag.Quote(w.Text), hint)
		return t, false
	}
	if !id.is(SourceIP) || d.addresses[l] {
		return t, true
	}
	bad := 0
	for _, v := range l.Tests {
		if v.Kind == TestPrefix {
			continue
		}
		d.fail(v.Pos, fmt.Sprintf("%s is not a valid address or network, and %s tests `%s` against list `%s`", diag.Quote(v.Text), where(w.Pos), id.Name.Text, l.Name.Text),
			"write an address such as `203.0.113.7` or a network such as `203.0.113.0/24`")
		if bad++; bad == maxListProblems {
			break
		}
	}
	d.addresses[l] = bad == 0
	return t, bad == 0
}

// fitting returns t adapted to the kind of id, or the mistake that t never holds for it.
func fitting(t Test, id Identity, sc scope) (Test, mistake) {
	switch {
	case id.is(SourceIP):
		if t.Kind == TestGlob {
			return t, mistake{"addresses are not compared as text: " + diag.Quote(t.Text), "write a network: " + diag.Quote(globNetwork(t.Text))}
		}
		if t.Kind != TestPrefix {
			return t, mistake{diag.Quote(t.Text) + " is not a valid address or network", "write `203.0.113.7`, `203.0.113.0/24`, `\"2001:db8::/32\"` or `in LIST`"}
		}
		return t, mistake{}
	case id.is(SourceMethod) && t.Kind == TestLiteral:
		if wrong := checkMethod(t.Text); wrong != (mistake{}) {
			return t, wrong
		}
	case id.is(SourceHost) && strings.Count(t.Text, ":") == 1:
		host, _, _ := strings.Cut(t.Text, ":")
		return t, mistake{"hosts are compared without their port: " + diag.Quote(t.Text), "write " + diag.Quote(host)}
	case id.is(SourcePath):
		if wrong := checkWholePath(t); wrong != (mistake{}) {
			return t, wrong
		}
	case id.is(SourceRoute) && t.Kind == TestLiteral && !sc.unsure:
		if !sc.hasText(t.Text) {
			return t, mistake{"`route` is never " + diag.Quote(t.Text), "write a pattern of this rule's `match`"}
		}
	}
	// An identity that is never the client's address is text: an address is compared as it is written.
	mayBeIP := slices.ContainsFunc(id.Sources, func(s Source) bool { return s.Kind == SourceIP })
	if t.Kind == TestPrefix && t.Prefix.IsSingleIP() && !strings.Contains(t.Text, "/") && !mayBeIP {
		t.Kind = TestLiteral
	}
	return t, mistake{}
}

// checkWholePath returns the mistake that no path is like t.
func checkWholePath(t Test) mistake {
	clean := strings.TrimSuffix(cleanPath("/"+strings.TrimPrefix(t.Text, "/")), "/")
	if t.Text == "/" || t.Text == clean || t.Kind == TestGlob && !strings.HasSuffix(t.Text, "/") {
		return mistake{}
	}
	return mistake{
		"no request has the path " + diag.Quote(t.Text) + ": paths begin with a slash, are cleaned, and are compared without a slash at the end",
		"write " + diag.Quote(or(clean, "/")) + ", or a pattern such as `match: /admin/` for a path and all below it",
	}
}

// globNetwork returns the network that a glob such as 10.0.* was meant to be, or an example of a
// network.
func globNetwork(glob string) string {
	parts := strings.Split(strings.TrimRight(glob, ".*"), ".")
	full := strings.Join(append(slices.Clone(parts), "0", "0", "0")[:4], ".")
	if p, err := netip.ParsePrefix(fmt.Sprintf("%s/%d", full, 8*len(parts))); err == nil {
		return p.String()
	}
	return "203.0.113.0/24"
}
