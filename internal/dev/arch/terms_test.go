package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Layers between a Gate and its store know of a rule what is in Terms.Handling; stores know
// nothing of it. A layer that read more would have to be looked at whenever rules learn
// something new.
func TestLayersReadHandlingAlone(t *testing.T) {
	testdep.SkipUnderRace(t)
	read := 0
	for name, src := range moduleFiles(t, "../../..") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		bad, fine := termsRead(t, name, src)
		for _, at := range bad {
			t.Errorf("%s reads more of Terms than Handling", at)
		}
		read += fine
	}
	if read < 5 {
		t.Errorf("only %d places read Terms.Handling: is this still how layers are written?", read)
	}
}

func TestReadingMoreThanHandlingIsSeen(t *testing.T) {
	f := func(file, expression string, bad int) {
		t.Helper()
		got, _ := termsRead(t, file, "package p\nfunc f() bool { return "+expression+" }\n")
		if len(got) != bad {
			t.Errorf("%s: %s: %v", file, expression, got)
		}
	}
	f("internal/chain/node/a.go", "l.Terms != nil && l.Terms.Handling.Final", 0)
	f("internal/chain/node/a.go", "l.Terms.Role == tidegate.Blocks", 1)
	f("internal/chain/queue/a.go", "c.Limit.Terms.Answer.Nominal == nil", 1)
	f("internal/chain/queue/a.go", "look(l.Terms)", 1)
	f("store/redis/a.go", "l.Terms.Handling.Final", 1)
	f("store/memory/a.go", "l.Terms != nil", 1)
	f("internal/chain/sim/a.go", "made(tidegate.Terms{})", 0)
	f("httplimit/a.go", "l.Terms.Role == tidegate.Blocks", 0)
}

// termsRead returns where a file of a layer or store reads more than it should, and in how
// many places it reads Handling.
func termsRead(t *testing.T, name, src string) (bad []string, handling int) {
	t.Helper()
	layer := strings.HasPrefix(name, "internal/chain/") || strings.HasPrefix(name, "fleet/")
	store := strings.HasPrefix(name, "store/") && !strings.HasPrefix(name, "store/storetest/")
	if !layer && !store {
		return nil, 0
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	fine := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if isTerms(n.X) && layer && n.Sel.Name == "Handling" {
				fine[n.X] = true
				handling++
			}
			if isTerms(n) && !fine[n] {
				bad = append(bad, set.Position(n.Pos()).String())
			}
		case *ast.BinaryExpr:
			if right, ok := n.Y.(*ast.Ident); ok && right.Name == "nil" && layer {
				fine[n.X] = true
			}
		case *ast.AssignStmt: // what is forgotten is not read
			for i, to := range n.Lhs {
				if from, ok := n.Rhs[min(i, len(n.Rhs)-1)].(*ast.Ident); ok && from.Name == "nil" {
					fine[to] = true
				}
			}
		}
		return true
	})
	return bad, handling
}

// isTerms reports whether e is the field, and not the type of it.
func isTerms(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Terms" {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return !ok || of.Name != "tidegate"
}
