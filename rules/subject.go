package rules

import (
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// subject is what a rule counts by: its `per`. If a part has several sources, or falls back to the
// client's address, values from each of them have counters of their own. Each combination of
// sources is a scope, with a number below len(scopes).
type subject struct {
	parts  []part
	scopes []string // by combination
}

type part struct {
	id       *identity
	missing  rulefile.Missing
	variants int // number of sources, plus one for the address as a fallback
	// rows has the values that are counted apart, each in all spellings that its row accepts, with
	// the one by which it is counted; nil means that all values are counted apart. Every other value
	// is counted as other, and so is a missing one, unless the rule refuses or skips requests without
	// it.
	rows  map[string]string
	other string
	fold  bool // values are looked up in rows without their case
}

// maxScopes bounds the combinations, since each has its own limits.
const maxScopes = 256

func (c *compiler) subject(r *rulefile.Rule) (subject, bool) {
	s := subject{scopes: []string{""}}
	per := r.Per
	if len(per) == 0 { // an access rule: it counts nothing, but it needs a key for the caller that it denies
		per = []rulefile.Word{{Text: c.ids.ip.name}}
	}
	for i, name := range per {
		p := part{id: c.ids.find(name.Text)}
		p.missing = missing(r, p.id)
		p.know(r, c.config.IgnoreCase && p.id.ofPath())
		names := make([]string, 0, len(p.id.sources)+1)
		for way := range p.id.sources {
			names = append(names, p.id.scope(way))
		}
		if p.missing == rulefile.MissingIP && !p.id.always && p.rows == nil {
			names = append(names, c.ids.ip.name)
		}
		p.variants = len(names)
		s.parts = append(s.parts, p)
		if len(s.scopes)*p.variants > maxScopes {
			return subject{}, false
		}
		s.scopes = combine(s.scopes, names, i > 0)
	}
	return s, true
}

// know finds the values that the tables and tiers of r distinguish. It spells them as the conditions
// of their branches do: otherwise a request that has the limits of a row would share the counter of
// all others.
func (p *part) know(r *rulefile.Rule, fold bool) {
	f := r.Finite(p.id.name)
	if f == nil {
		return
	}
	p.rows, p.other, p.fold = make(map[string]string, len(f.Values)), f.Else, fold
	of := condition{id: p.id, fold: fold}
	spellings := of.spellings()
	for _, v := range f.Values {
		for _, text := range spelled(v, spellings) {
			if _, had := p.rows[text]; !had { // the first row that accepts it counts
				p.rows[text] = v
			}
		}
	}
	if !r.HasMissing { // the table says what applies without a value
		p.missing = rulefile.MissingIP
	}
}

// missing returns what happens to requests without id. Every request has an address, even if the
// front end does not know it; values that a client sends fall back to it; and a rule is skipped if
// the caller of a check API omits a descriptor.
func missing(r *rulefile.Rule, id *identity) rulefile.Missing {
	switch {
	case id.isIP(len(id.sources) - 1):
		return rulefile.MissingIP
	case r.HasMissing:
		return r.Missing
	case id.descriptor():
		return rulefile.MissingSkip
	}
	return rulefile.MissingIP
}

// combine appends each of next to each of scopes.
func combine(scopes, next []string, comma bool) []string {
	all := make([]string, 0, len(scopes)*len(next))
	for _, s := range scopes {
		for _, n := range next {
			if comma {
				n = "," + n
			}
			all = append(all, s+n)
		}
	}
	return all
}

// noAddress is the key of callers without any address: they share a counter, so that nobody escapes
// by having no address.
const noAddress = "@"

// find returns the key of the request and the number of its scope. missing is the part without a
// value, if the rule refuses or skips such requests.
func (s *subject) find(st *state, h *hit) (key string, scope int, missing *part) {
	st.parts = st.parts[:0]
	for i := range s.parts {
		p := &s.parts[i]
		v, ok := st.find(p.id, h)
		switch {
		case p.rows != nil && (ok || p.missing == rulefile.MissingIP):
			if p.fold {
				v.text = route.Fold(v.text)
			}
			if row, known := p.rows[v.text]; known {
				v.text = row
			} else {
				v = value{text: p.other}
			}
		case ok || p.id.always:
		case p.missing != rulefile.MissingIP:
			return "", 0, p
		default:
			v, ok = st.find(st.set.ids.ip, h)
			if !ok {
				v.text = noAddress
			}
			v.source = len(p.id.sources)
		}
		scope = scope*p.variants + v.source
		st.parts = append(st.parts, v.text)
	}
	return st.key(), scope, nil
}

// key returns the key of the parts: a single value unchanged, several joined unambiguously. A key
// that is too long is replaced by a hash, which is longer than any unhashed key.
func (st *state) key() string {
	switch len(st.parts) {
	case 0:
		return ""
	case 1:
		if len(st.parts[0]) <= tidegate.MaxKey {
			return st.parts[0]
		}
	}
	return st.request.Key(st.parts...)
}

// named returns what the request is counted by, part by part.
func (s *subject) named(st *state, h *hit) []SubjectPart {
	_, scope, missing := s.find(st, h)
	if missing != nil {
		return nil
	}
	all := make([]SubjectPart, len(s.parts))
	for i := len(s.parts) - 1; i >= 0; i-- { // in the order in which find combines them
		p := &s.parts[i]
		way := scope % p.variants
		scope /= p.variants
		all[i] = SubjectPart{Name: st.set.ids.ip.name, Value: strings.Clone(st.parts[i])}
		if way < len(p.id.sources) {
			all[i].Name = p.id.scope(way)
		}
	}
	return all
}

// text returns per as it is written in the rule file.
func (s *subject) text() string {
	var names []string
	for i := range s.parts {
		names = append(names, s.parts[i].id.name)
	}
	return strings.Join(names, ", ")
}
