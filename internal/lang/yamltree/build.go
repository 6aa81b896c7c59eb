package yamltree

import "fmt"

// Bounds on the shape of a file: far above what anybody writes by hand.
const (
	maxDepth  = 64
	maxFields = 10_000 // as many rows as a table may have
)

// builder groups tokens by their indentation. The scanner has checked everything that
// is on one line or in { } and [ ], so what can still be wrong are the columns of keys
// and dashes, and the bounds above.
type builder struct {
	*scanner
	next  int    // index of the next token
	depth int    // how many maps and lists are open
	room  []Node // allocated ahead, as a file has many nodes
}

// node returns a pointer to a copy of n.
func (b *builder) node(n Node) *Node {
	if len(b.room) == 0 {
		b.room = make([]Node, min(64, len(b.tokens)))
	}
	made := &b.room[0]
	b.room = b.room[1:]
	*made = n
	return made
}

// build returns the tree of the tokens. It returns nil if the shape of the file is
// unclear, and a problem says where.
func (s *scanner) build() *Node {
	b := builder{scanner: s}
	root := b.value()
	if !b.done() {
		b.explain(root)
	}
	if s.broken {
		return nil
	}
	return root
}

// done reports whether there is nothing left to read, or no use in doing so.
func (b *builder) done() bool { return b.broken || b.next == len(b.tokens) }

// value reads the node that begins with the next token.
func (b *builder) value() *Node {
	t := b.tokens[b.next]
	switch {
	case t.kind == openMap || t.kind == openList:
		return b.nested(t, b.flowNode)
	case t.kind == dash:
		return b.nested(t, b.blockList)
	case b.isKey(b.next):
		return b.nested(t, b.blockMap)
	}
	b.next++
	return b.scalar(t)
}

func (b *builder) scalar(t token) *Node {
	return b.node(Node{Kind: Scalar, Value: t.text, Quoted: t.quoted, Pos: t.pos(b.file)})
}

// nested reads a map or list that begins with t, by calling read. It fails if more than
// maxDepth would be open.
func (b *builder) nested(t token, read func(*Node, token)) *Node {
	n := b.node(Node{Pos: t.pos(b.file)})
	if b.depth == maxDepth {
		b.fail(t.place, fmt.Sprintf("more than %d levels, one inside of the other", maxDepth), "write it with fewer")
		return n
	}
	b.depth++
	read(n, t)
	b.depth--
	return n
}

// blockList reads into n the items whose dash is in the column of first.
func (b *builder) blockList(n *Node, first token) {
	n.Kind = List
	for !b.done() && b.tokens[b.next].kind == dash && b.tokens[b.next].col == first.col {
		b.next++
		item := b.blockValue(first.col)
		n.Items = append(n.Items, item)
		b.endValue(item, first.col)
	}
}

// blockMap reads into n the fields whose key is in the column of first.
func (b *builder) blockMap(n *Node, first token) {
	n.Kind = Map
	for !b.done() && b.isKey(b.next) && b.tokens[b.next].col == first.col {
		key := b.tokens[b.next]
		if b.full(n, key) {
			return
		}
		b.next += 2 // and its colon
		value := b.blockValue(first.col)
		n.Fields = append(n.Fields, Field{b.scalar(key), value})
		b.endValue(value, first.col)
	}
}

// full reports whether n has as many fields as a map may have, and fails then: key would be one more.
func (b *builder) full(n *Node, key token) bool {
	if len(n.Fields) < maxFields {
		return false
	}
	b.fail(key.place, fmt.Sprintf("a map of more than %d fields", maxFields), "divide it among several rules or files")
	return true
}

// blockValue reads the value of the colon or dash just read, whose key or dash is in
// column col: what is on its line, or deeper on a line below; below a key also a list
// that begins in its column. If there is none, it returns a Null node.
func (b *builder) blockValue(col int) *Node {
	sign := b.tokens[b.next-1]
	if b.next < len(b.tokens) {
		t := b.tokens[b.next]
		if t.line == sign.line || t.col > col || t.col == col && t.kind == dash && sign.kind == colon {
			return b.value()
		}
	}
	return b.null(sign)
}

// null returns the node for a value that is left out after sign, a colon or dash.
func (b *builder) null(sign token) *Node {
	return b.node(Node{Kind: Null, Pos: place{sign.line, sign.col + 1, 1}.pos(b.file)})
}

// endValue fails if the token after value is deeper than col and so belongs to nothing:
// if it could be part of value, it would have been read with it.
func (b *builder) endValue(value *Node, col int) {
	if !b.done() && b.tokens[b.next].col > col {
		b.explain(value)
	}
}

// flowNode reads from { or [ to where it is closed. The scanner has made sure that it is,
// and that what is inside is in order.
func (b *builder) flowNode(n *Node, open token) {
	n.Flow, n.Kind = true, Map
	if open.kind == openList {
		n.Kind = List
	}
	for b.next++; !b.done(); {
		switch t := b.tokens[b.next]; {
		case t.kind == closeMap || t.kind == closeList:
			b.next++
			return
		case t.kind == comma:
			b.next++
		case n.Kind == List:
			n.Items = append(n.Items, b.value())
		case b.full(n, t):
			return
		default:
			b.next += 2 // the key and its colon
			n.Fields = append(n.Fields, Field{b.scalar(t), b.flowValue()})
		}
	}
}

// flowValue reads the value of a key inside of { }.
func (b *builder) flowValue() *Node {
	if k := b.tokens[b.next].kind; k == comma || k == closeMap {
		return b.null(b.tokens[b.next-1])
	}
	return b.value()
}
