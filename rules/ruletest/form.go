package ruletest

import (
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// form reads the fields of a form, which is the body of the step. A field with a list of
// values is sent once for each.
func (r *reader) form(s *step, n *yamltree.Node, parts bool) {
	switch {
	case n.Kind != yamltree.Map:
		r.bad(n.Pos, "a form has names and values", "write, for example, `{ email: ann@example.com, password: secret }`")
		return
	case s.Body != "" || s.Form != nil:
		r.bad(n.Pos, "the step has a body already", "write one of `body`, `form` and `multipart`")
		return
	}
	s.Form, s.Parts = make([]describe.Field, 0, len(n.Fields)), parts
	for _, f := range n.Fields {
		for _, item := range items(f.Value) {
			if item.Kind != yamltree.Scalar && item.Kind != yamltree.Null {
				r.bad(item.Pos, "a field of a form is text", "write one value, or a list of values for a field that is sent more than once; nested names are written as `\"user[email]\": x`")
				continue
			}
			s.Form = append(s.Form, describe.Field{Name: f.Key.Value, Value: item.Value})
		}
	}
}
