package yamltree

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	library "github.com/goccy/go-yaml/token"
)

// build has the library's parser say how the tokens belong together. It sees no
// text, only an x for each scalar; Offset leads back to our token.
func (s *scanner) build() *Node {
	s.fillNulls()
	var tokens library.Tokens
	for i, t := range s.tokens {
		tokens.Add(foreign(t, &library.Position{Line: t.line, Column: t.col, Offset: i}))
	}
	root, err := s.parse(tokens)
	if err != nil {
		s.explain(err)
	}
	return root
}

func foreign(t token, pos *library.Position) *library.Token {
	switch t.kind {
	case null:
		return library.New("null", "null", pos)
	case dash:
		return library.SequenceEntry("-", pos)
	case colon:
		return library.MappingValue(pos)
	case comma:
		return library.CollectEntry(",", pos)
	case openMap:
		return library.MappingStart("{", pos)
	case closeMap:
		return library.MappingEnd("}", pos)
	case openList:
		return library.SequenceStart("[", pos)
	case closeList:
		return library.SequenceEnd("]", pos)
	}
	return library.String("x", "x", pos)
}

// parse calls the library. No tokens of ours are known to make it panic; but a
// file is read again whenever it changes, in a process that serves, and that
// must not end for a mistake in there.
func (s *scanner) parse(tokens library.Tokens) (root *Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	// We tell about keys that are there twice; to the library all are x.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	return s.node(file.Docs[0].Body), nil
}

// node makes ours of the library's.
func (s *scanner) node(n ast.Node) *Node {
	t := s.tokens[n.GetToken().Position.Offset]
	ours := &Node{Kind: Null, Pos: t.pos(s.file)}
	switch n := n.(type) {
	case *ast.StringNode:
		ours.Kind, ours.Value, ours.Quoted = Scalar, t.text, t.quoted
	case *ast.SequenceNode:
		ours.Kind, ours.Flow = List, n.IsFlowStyle
		for _, item := range n.Values {
			ours.Items = append(ours.Items, s.node(item))
		}
	case *ast.MappingNode:
		ours.Kind, ours.Flow = Map, n.IsFlowStyle
		for _, field := range n.Values {
			ours.Fields = append(ours.Fields, Field{s.node(field.Key), s.node(field.Value)})
		}
		if !n.IsFlowStyle {
			ours.Pos = ours.Fields[0].Key.Pos
		}
	}
	return ours
}
