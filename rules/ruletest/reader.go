package ruletest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// reader collects all problems of a test file.
type reader struct {
	lines    []string
	problems diag.List
	met      func(what string, known []field) // called for every map; nil means never
}

func (r *reader) bad(pos diag.Pos, message, hint string) {
	r.problems.Add(diag.Problem{Pos: pos, Source: line(r.lines, pos.Line), Message: message, Hint: hint})
}

func line(lines []string, n int) string {
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[n-1], "\r")
}

// field is a known field of a map, and how its value is read.
type field struct {
	name string
	may  shape // what the value may be, for [Schema]
	read func(*yamltree.Node)
}

// fields passes every known field of a map to its reader, and reports others.
func (r *reader) fields(n *yamltree.Node, what string, known ...field) {
	if r.met != nil {
		r.met(what, known)
	}
	if n.Kind != yamltree.Map {
		r.bad(n.Pos, fmt.Sprintf("%s has fields", what), "write, for example, `"+known[0].name+": …`")
		return
	}
	for _, f := range n.Fields {
		i := slices.IndexFunc(known, func(k field) bool { return k.name == f.Key.Value })
		if i < 0 {
			r.unknown(f.Key, "field", what, names(known))
			continue
		}
		known[i].read(f.Value)
	}
}

func names(known []field) []string {
	all := make([]string, len(known))
	for i, k := range known {
		all[i] = k.name
	}
	return all
}

func (r *reader) unknown(n *yamltree.Node, kind, what string, known []string) {
	hint := fmt.Sprintf("%s has %s", what, strings.Join(known, ", "))
	if near := diag.Nearest(n.Value, known); near != "" {
		hint = fmt.Sprintf("did you mean `%s`?", near)
	}
	r.bad(n.Pos, fmt.Sprintf("unknown %s `%s`", kind, n.Value), hint)
}

// items returns the elements of a list, or the node itself.
func items(n *yamltree.Node) []*yamltree.Node {
	if n.Kind == yamltree.List {
		return n.Items
	}
	return []*yamltree.Node{n}
}

func (r *reader) text(n *yamltree.Node, hint string) string {
	if n.Kind != yamltree.Scalar {
		r.bad(n.Pos, "this has to be a word or a sentence, not a list or a map", hint)
		return ""
	}
	return n.Value
}

// texts reads a map of texts; an empty or absent value is "".
func (r *reader) texts(n *yamltree.Node, what string) map[string]string {
	if n.Kind != yamltree.Map {
		r.bad(n.Pos, fmt.Sprintf("%s are names and values", what), "write, for example, `{ user: 42 }`")
		return nil
	}
	all := make(map[string]string, len(n.Fields))
	for _, f := range n.Fields {
		switch {
		case f.Value.Kind == yamltree.Null, f.Value.Value == "absent" && !f.Value.Quoted:
			all[f.Key.Value] = ""
		case f.Value.Kind == yamltree.Scalar:
			all[f.Key.Value] = f.Value.Value
		default:
			r.bad(f.Value.Pos, fmt.Sprintf("%s is one value", f.Key.Value), "write it as one word; quote it if it has spaces")
		}
	}
	return all
}

func (r *reader) number(n *yamltree.Node, least, most int64) int64 {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yamltree.Scalar || err != nil || v < least || v > most {
		r.bad(n.Pos, fmt.Sprintf("`%s` is not a whole number from %d to %d", n.Value, least, most), fmt.Sprintf("write, for example, `%d`", max(least, 3)))
		return least
	}
	return v
}

func (r *reader) duration(n *yamltree.Node) (d time.Duration, ok bool) {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yamltree.Scalar || err != nil || d < 0 {
		r.bad(n.Pos, fmt.Sprintf("`%s` is not a duration", n.Value), "write, for example, `1.5s`, `15m` or `24h`")
		return 0, false
	}
	return d, true
}
