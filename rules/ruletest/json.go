package ruletest

import (
	"encoding/json"
	"regexp"
	"strings"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// body reads a JSON body.
func (r *reader) body(s *step, n *yamltree.Node) {
	if s.Form != nil {
		r.bad(n.Pos, "the step has a body already", "write one of `body`, `form` and `multipart`")
	}
	s.Body = r.json(n)
}

// json writes a YAML value as the JSON body that a client would send. Quoted values are strings;
// unquoted ones that look like a number or a boolean are written as such.
func (r *reader) json(n *yamltree.Node) string {
	var b strings.Builder
	r.writeJSON(&b, n)
	return b.String()
}

func (r *reader) writeJSON(b *strings.Builder, n *yamltree.Node) {
	switch n.Kind {
	case yamltree.Map:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(f.Key.Value))
			b.WriteByte(':')
			r.writeJSON(b, f.Value)
		}
		b.WriteByte('}')
	case yamltree.List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			r.writeJSON(b, item)
		}
		b.WriteByte(']')
	case yamltree.Scalar:
		if !n.Quoted && bare.MatchString(n.Value) {
			b.WriteString(n.Value)
		} else {
			b.WriteString(quote(n.Value))
		}
	default:
		b.WriteString("null")
	}
}

// bare matches what JSON writes without quotes.
var bare = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)$`)

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always is JSON
		panic(err)
	}
	return string(b)
}
