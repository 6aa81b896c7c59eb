package rules

import (
	"fmt"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/jwt"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// why returns why a rule that was hit does not apply; "" if it applies and counts.
func (st *state) why(h *hit) string {
	e := &st.set.entries[h.entry]
	switch h.status {
	case notWhen:
		return "when " + st.whyNot(h.failed, h)
	case unless:
		var all []string
		for i := range e.conds.unless {
			all = append(all, st.whyHolds(&e.conds.unless[i], h))
		}
		return "unless " + strings.Join(all, " and ")
	case exempted:
		return "exempt by " + place(st.set.entries[h.by].exempt.Pos)
	case replaced:
		return fmt.Sprintf("%s applies instead of it", st.set.entries[h.by].rule.name)
	case skipped:
		return h.missing.id.name + " is missing, and the rule skips requests without it"
	case refuses:
		return h.missing.id.name + " is missing, and the rule refuses requests without it"
	}
	return ""
}

// whyNot returns why a condition does not hold.
func (st *state) whyNot(c *condition, h *hit) string {
	v, ok := st.find(c.id, h)
	if !ok {
		return fmt.Sprintf("%s: it is missing, not %s", c.id.name, c.text)
	}
	return fmt.Sprintf("%s: %q is not %s", c.id.name, st.shown(c, v), c.text)
}

func (st *state) whyHolds(c *condition, h *hit) string {
	v, ok := st.find(c.id, h)
	if !ok {
		return c.id.name + ": it is missing"
	}
	return fmt.Sprintf("%s: %q is %s", c.id.name, st.shown(c, v), c.text)
}

// shown returns the value that was compared: for networks, the whole address.
func (st *state) shown(c *condition, v value) string {
	if c.byAddress && c.id.isIP(v.source) {
		if addr := st.clientAddress(); addr.IsValid() {
			return addr.String()
		}
	}
	return v.text
}

// conditionText returns the values that a condition accepts, as they were written.
func conditionText(c *rulefile.Condition) string {
	all := make([]string, 0, len(c.Any))
	for _, t := range c.Any {
		switch t.Kind {
		case rulefile.TestLiteral:
			all = append(all, strconv.Quote(t.Text))
		case rulefile.TestIn:
			all = append(all, "in "+t.Text)
		case rulefile.TestAbsent:
			all = append(all, "absent")
		case rulefile.TestPresent:
			all = append(all, "present")
		default:
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, " or ")
}

// whyMissing returns why id is missing if the request does not show it: a header, token or key was
// sent but not believed, or lacks the value. It returns "" if nothing was sent.
func (st *state) whyMissing(id *identity) string {
	for i := range id.sources {
		if s := &id.sources[i]; s.kind == rulefile.SourceHeader {
			if _, ok := st.request.Value("client " + s.ask); ok {
				return "there is a " + s.ask + ", which is believed only from a trusted peer"
			}
		}
		if id.sources[i].kind == rulefile.SourceAPIKey {
			if why := st.whyNoKey(id.sources[i].arg); why != "" {
				return why
			}
			continue
		}
		if id.sources[i].kind != rulefile.SourceJWT || st.token() == "" {
			continue
		}
		if st.set.verifier == nil {
			return "there is a token, and no key is configured to verify it"
		}
		if _, reason := st.set.verifier.Verify(st.token()); reason != jwt.Valid {
			return "the token is forged, expired or not for this service (" + reason.String() + ")"
		}
		return "the token has no claim " + id.sources[i].arg
	}
	return ""
}

// whyNoKey returns why an attribute of an API key is missing; "" if there is no key.
func (st *state) whyNoKey(attribute string) string {
	switch {
	case st.set.keys == nil:
		return "no file of API keys is configured"
	case st.keyText() == "":
		return ""
	case st.apiKey("") == "":
		return "there is an API key, and it is not in the file: it was revoked, or never made"
	}
	return "the API key " + diag.Quote(st.apiKey("")) + " has no " + attribute
}

// explainMissed explains a rule that Match did not examine: it is disabled, no pattern of it
// matches, or it requires another value.
func (st *state) explainMissed(i int) ExplainedRule {
	h := hit{ref: ref{entry: int32(i)}, route: -1}
	e := &st.set.entries[i]
	if e.rule.mode == rulefile.Disabled {
		x := st.describe(&h)
		x.Pattern, x.Why = "", "it is disabled"
		return x
	}
	if !st.matches(&h) {
		x := st.describe(&h)
		x.Pattern, x.Why = "", st.whyNoPattern(e.patterns)
		return x
	}
	st.resolve(&h, -1)
	x := st.describe(&h)
	x.Why = st.why(&h)
	return x
}

// matches reports whether the request matches the entry of h, and sets pattern and route of h to
// the first pattern that matches. An entry without patterns matches every request.
func (st *state) matches(h *hit) bool {
	patterns := st.set.entries[h.entry].patterns
	for j, text := range patterns {
		at := len(st.routes)
		if st.routes = st.try(rulefile.PatternOf(text).Route(), st.routes); len(st.routes) > at {
			h.pattern, h.route = int32(j), int32(at)
			return true
		}
	}
	return len(patterns) == 0
}

// try appends a hit to hits if the pattern p alone matches the request.
func (st *state) try(p route.Pattern, hits []route.Hit) []route.Hit {
	one := route.New()
	one.IgnoreCase = st.set.config.IgnoreCase
	one.Add(p, 0)
	return one.Match(st.request.Method, st.request.Host, st.readings[st.way], hits)
}

// whyNoPattern returns what does not match: the method if only that differs, else the host, else the
// path.
func (st *state) whyNoPattern(patterns []string) string {
	var methods, hosts, paths []string
	for _, text := range patterns {
		p := rulefile.PatternOf(text)
		anyMethod, anyHost := p.Route(), route.Pattern{Path: p.Route().Path}
		anyMethod.Method = ""
		switch {
		case p.Method != "" && len(st.try(anyMethod, nil)) > 0:
			methods = append(methods, p.Method)
		case p.Host != "" && len(st.try(anyHost, nil)) > 0:
			hosts = append(hosts, p.Host)
		default:
			paths = append(paths, p.Path)
		}
	}
	switch {
	case len(methods) > 0:
		return "the method is not " + strings.Join(methods, " or ")
	case len(hosts) > 0:
		return "the host is not " + strings.Join(hosts, " or ")
	}
	return "the path does not match " + strings.Join(paths, " or ")
}

func place(p diag.Pos) string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}
