package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// holder is one of the identities that a measure names, with the value that requests must have.
type holder struct {
	id       *identity
	everyone bool
	texts    []string     // the value in each spelling, and an address as it is counted
	network  netip.Prefix // also all addresses in it; unmapped
	fold     bool         // values are compared without their case
}

func (w *holder) holds(st *state, h *hit) bool {
	if w.everyone {
		return true
	}
	v, ok := st.peek(w.id, h)
	if !ok {
		return false
	}
	text := v.text
	if w.fold {
		text = route.Fold(text)
	}
	return slices.Contains(w.texts, text) || w.network.IsValid() && w.network.Contains(st.addressOf(w.id, v))
}

// literals returns the values by which the holder can be looked up.
func (w *holder) literals() []literal {
	all := make([]literal, 0, len(w.texts)+1)
	for _, text := range w.texts {
		all = append(all, literal{w.id, text})
	}
	return all
}

// peek is find without counting missing values: measures should not raise that count.
func (st *state) peek(id *identity, h *hit) (value, bool) {
	if !id.local {
		if v := &st.values[id.slot]; v.known {
			return *v, v.there
		}
	}
	st.quiet = true
	v := st.look(id, h)
	st.quiet = false
	if v.there && !id.local {
		v.known = true
		st.values[id.slot] = v
		st.touched = append(st.touched, id.slot)
	}
	return v, v.there
}

// who compiles the identities that m names. It leaves out those with problems.
func (c *measureCompiler) who(m *Measure) []holder {
	switch {
	case len(m.As) == 0:
		c.fail("as", "it does not say who it is about", "name somebody, as in user=42 or ip=192.0.2.7")
	case len(m.As) > maxMeasureNames:
		c.fail("as", fmt.Sprintf("there are %d names, and %d are allowed", len(m.As), maxMeasureNames), "name fewer")
		return nil
	}
	var all []holder
	for _, name := range slices.Sorted(maps.Keys(m.As)) {
		if w, ok := c.holder(m, name, m.As[name]); ok {
			all = append(all, w)
		}
	}
	return all
}

func (c *measureCompiler) holder(m *Measure, name, text string) (holder, bool) {
	id := c.identity(name)
	switch {
	case id == nil:
		c.unknown(name)
		return holder{}, false
	case id.sources[0].kind == rulefile.SourceEveryone:
		return holder{id: id, everyone: true}, c.everyone(m, text)
	case id.byRule() && m.Rule == "":
		c.fail("as", diag.Quote(name)+" is a part of the path, which each rule finds by its own pattern", "name the rule as well")
		return holder{}, false
	case !utf8.ValidString(text):
		c.fail("as", diag.Quote(name)+" is not text in UTF-8", "")
		return holder{}, false
	case len(text) > maxMeasureValue:
		c.fail("as", fmt.Sprintf("%s has %d bytes, and %d are allowed", diag.Quote(name), len(text), maxMeasureValue), "")
		return holder{}, false
	}
	w := holder{id: id, fold: c.set.config.IgnoreCase && id.ofPath()}
	of := condition{id: id, fold: w.fold}
	w.texts = slices.DeleteFunc(spelled(text, of.spellings()), func(text string) bool { return text == "" })
	if len(w.texts) == 0 {
		c.fail("as", diag.Quote(name)+" is empty, which is nobody", "write "+diag.Quote(name+"=VALUE"))
		return holder{}, false
	}
	if !c.network(m, &w, name, text) {
		return holder{}, false
	}
	slices.Sort(w.texts)
	w.texts = slices.Compact(w.texts)
	return w, true
}

// everyone checks a measure that is about everyone, and reports whether it is valid.
func (c *measureCompiler) everyone(m *Measure, text string) bool {
	switch {
	case text != "":
		c.fail("as", "`everyone` has no value, and this is "+diag.Quote(text), "leave the value empty")
	case len(m.As) > 1:
		c.fail("as", "`everyone` beside another name says nothing", "take it out")
	case m.Kind == Ban && m.Rule == "":
		c.fail("as", "a ban of everyone refuses every request", "name the rule that it is for")
	default:
		return true
	}
	return false
}

// network sets the network that text stands for, if the identity can be an address. A single
// address is widened as the identity counts it: for IPv6, to the /64.
func (c *measureCompiler) network(m *Measure, w *holder, name, text string) bool {
	at := slices.IndexFunc(w.id.sources, func(s source) bool { return s.kind == rulefile.SourceIP })
	if at < 0 {
		return true
	}
	s := &w.id.sources[at]
	if addr := parseAddress(text); addr.IsValid() {
		bits := s.bits6
		if addr.Is4() {
			bits = s.bits4
		}
		w.network, _ = addr.Prefix(bits)
		w.texts = append(w.texts, networkOf(addr, s))
		return true
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		if len(w.id.sources) > 1 {
			return true // a value of another source
		}
		c.fail("as", diag.Quote(text)+" is neither an address nor a network", "write "+diag.Quote(name+"=192.0.2.7")+" or "+diag.Quote(name+"=192.0.2.0/24"))
		return false
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	switch {
	case p != p.Masked():
		c.fail("as", diag.Quote(text)+" is not a network: it has bits beyond its length", "write "+diag.Quote(p.Masked().String())+", or the address alone")
	case p.Bits() == 0 && m.Kind == Ban && m.Rule == "":
		c.fail("as", diag.Quote(text)+" is every address, and a ban of it refuses every request", "name the rule that it is for")
	default:
		w.network = p
		w.texts = append(w.texts, p.String())
		return true
	}
	return false
}

// identity returns the identity of that name; nil if there is none.
func (c *measureCompiler) identity(name string) *identity {
	if id := c.set.ids.byName[name]; id != nil && !strings.HasPrefix(name, " ") {
		return id
	}
	if id := c.ids[name]; id != nil {
		return id
	}
	builtIn, ok := new(rulefile.File).Identity(name)
	if !ok {
		return nil
	}
	// No rule asks for it, so states have no slot for its value.
	id := &identity{name: name, slot: -1, local: true, always: true}
	for _, s := range builtIn.Sources {
		id.sources = append(id.sources, newSource(s))
	}
	c.ids[name] = id
	return id
}

func (c *measureCompiler) unknown(name string) {
	names := c.set.Identities()
	hint := "the names are " + strings.Join(names, ", ")
	if near := diag.Nearest(name, names); near != "" {
		hint = "did you mean " + diag.Quote(near) + "?"
	}
	c.fail("as", "there is no identity "+diag.Quote(name), hint)
}

// byRule reports whether the value depends on the pattern of the rule that asks.
func (id *identity) byRule() bool {
	return slices.ContainsFunc(id.sources, func(s source) bool {
		return s.kind == rulefile.SourceRoute || s.kind == rulefile.SourcePathWildcard
	})
}
