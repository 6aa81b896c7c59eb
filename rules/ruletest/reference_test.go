package ruletest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// docs/reference/rules.md has exactly the words of a test file.
func TestReferenceHasEveryWordOfATest(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reference/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(raw), "\n## A test file\n")
	var explained []string
	for _, m := range firstCell.FindAllStringSubmatch(section, -1) {
		explained = append(explained, m[1])
	}
	f, err := parser.ParseFile(token.NewFileSet(), "parse.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 3 {
			return true
		}
		if kind, ok := lit.Type.(*ast.Ident); !ok || kind.Name != "field" {
			return true
		}
		word, _ := strconv.Unquote(lit.Elts[0].(*ast.BasicLit).Value)
		known = append(known, word)
		return true
	})
	if len(known) < 20 {
		t.Fatalf("found %d words in the parser: is it still written so?", len(known))
	}
	for _, word := range known {
		if !slices.Contains(explained, word) {
			t.Errorf("docs/reference/rules.md does not explain `%s` of a test file", word)
		}
	}
	for _, word := range explained {
		if !slices.Contains(known, word) {
			t.Errorf("docs/reference/rules.md explains `%s`, which test files do not have", word)
		}
	}
}
