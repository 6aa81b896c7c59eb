package yamltree

import (
	"fmt"
	"strings"
)

// dump writes a tree with the place of each node, a line each.
func dump(n *Node) string {
	var b strings.Builder
	dumpNode(&b, n, "")
	return b.String()
}

func dumpNode(b *strings.Builder, n *Node, indent string) {
	if n == nil {
		b.WriteString("nothing\n")
		return
	}
	fmt.Fprintf(b, "%d:%d+%d ", n.Pos.Line, n.Pos.Col, n.Pos.Len)
	flow := ""
	if n.Flow {
		flow = " in flow style"
	}
	switch n.Kind {
	case Null:
		b.WriteString("null\n")
	case Scalar:
		quoted := ""
		if n.Quoted {
			quoted = " quoted"
		}
		fmt.Fprintf(b, "%q%s\n", n.Value, quoted)
	case Map:
		fmt.Fprintf(b, "map%s\n", flow)
		for _, f := range n.Fields {
			b.WriteString(indent + "  ")
			dumpNode(b, f.Key, "")
			b.WriteString(indent + "    = ")
			dumpNode(b, f.Value, indent+"    ")
		}
	case List:
		fmt.Fprintf(b, "list%s\n", flow)
		for _, item := range n.Items {
			b.WriteString(indent + "  - ")
			dumpNode(b, item, indent+"  ")
		}
	}
}
