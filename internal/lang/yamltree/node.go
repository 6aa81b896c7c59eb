// Package yamltree parses YAML into a tree of the text, with the place of every
// node. It is for files that operators write, so it accepts the part of YAML that
// means what it looks like: no anchors, tags or merge keys, one document, and no
// scalar becomes a number, a bool or null. Each error says what to write instead.
// It knows no fields; its callers do.
//
// Start with [Parse].
package yamltree

import "tidegate.dev/tidegate/internal/lang/diag"

// Kind is what a Node is.
type Kind uint8

const (
	Null   Kind = iota // nothing written, as after "key:"
	Scalar             // text, in Value
	Map                // with Fields
	List               // with Items
)

// Node is a value, or a key, where it stands in the file.
type Node struct {
	Kind   Kind
	Quoted bool // in ' or "; a block scalar (| or >) is not
	Flow   bool // a map or list in { } or [ ]
	// Value of a scalar, as written, without quotes and with escapes resolved:
	// 007, off and null are text.
	Value  string
	Pos    diag.Pos // of a scalar with the length of its first line as written
	Fields []Field  // in order
	Items  []*Node
}

// Field is an entry of a map.
type Field struct{ Key, Value *Node }

// What describes n for messages: "the value …", "a map", "a list" or "nothing".
func (n *Node) What() string {
	switch n.Kind {
	case Scalar:
		return "the value " + diag.Quote(n.Value)
	case Map:
		return "a map"
	case List:
		return "a list"
	}
	return "nothing"
}

// Plain returns n as nested map[string]any and []any, with the result of leaf for each
// Scalar and Null.
func (n *Node) Plain(leaf func(*Node) any) any {
	switch n.Kind {
	case Map:
		m := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			m[f.Key.Value] = f.Value.Plain(leaf)
		}
		return m
	case List:
		all := make([]any, len(n.Items))
		for i, item := range n.Items {
			all[i] = item.Plain(leaf)
		}
		return all
	}
	return leaf(n)
}
