package yamltree

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// FuzzParse holds for every input: there is a tree or a problem, each has a place
// that is in the file, each scalar stands where its place says, none is lost, and
// all is the same again when read again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("found no files: %v", err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add("\ufeffa: 'b'\r\n\tc: \xff")
	f.Add("a: { b: [::1]:5m }\nc: [::1]:99999\n")
	f.Fuzz(func(t *testing.T, src string) {
		root, problems := Parse("f.yaml", []byte(src))
		if root == nil && !problems.HasErrors() {
			t.Error("neither a tree nor a problem")
		}
		lines := diag.SplitLines([]byte(src))
		for _, p := range problems {
			inside(t, lines, p.Pos)
			if p.Message == "" || p.Source != "" && p.Source != strings.ToValidUTF8(lines.At(p.Line), "\ufffd") {
				t.Errorf("problem %+v does not show line %q", p, lines.At(p.Line))
			}
		}
		if root != nil {
			scalars := visit(t, lines, root)
			if len(problems) == 0 && scalars != words(src) {
				t.Errorf("the tree has %d scalars, the file %d", scalars, words(src))
			}
		}
		again, same := Parse("f.yaml", []byte(src))
		if !reflect.DeepEqual(again, root) || !reflect.DeepEqual(same, problems) {
			t.Errorf("read twice:\n%s%v\nand\n%s%v", dump(root), problems, dump(again), same)
		}
	})
}

func words(src string) int {
	lines, text, _ := decode("f.yaml", []byte(src))
	n := 0
	for _, t := range scan("f.yaml", lines, text).tokens {
		if t.kind == word {
			n++
		}
	}
	return n
}

// visit checks the places in a tree and returns how many scalars it has.
func visit(t *testing.T, lines diag.Lines, n *Node) int {
	inside(t, lines, n.Pos)
	scalars := 0
	switch n.Kind {
	case Scalar:
		scalars++
		stands(t, lines, n)
	case List:
		for _, item := range n.Items {
			scalars += visit(t, lines, item)
		}
	case Map:
		for _, f := range n.Fields {
			scalars += visit(t, lines, f.Key) + visit(t, lines, f.Value)
		}
	}
	return scalars
}

func inside(t *testing.T, lines diag.Lines, p diag.Pos) {
	width := len([]rune(lines.At(p.Line)))
	if p.Line < 1 || p.Line > len(lines) || p.Col < 1 || p.Col > width+1 || p.Len < 1 || p.Col+p.Len > width+2 {
		t.Errorf("%+v is outside of the file, which has %d lines, and %d characters there", p, len(lines), width)
	}
}

// stands checks that the text of a scalar begins where its place says.
func stands(t *testing.T, lines diag.Lines, n *Node) {
	written := string([]rune(lines.At(n.Pos.Line))[n.Pos.Col-1:][:n.Pos.Len])
	first := written[0]
	switch {
	case n.Quoted:
		if first != '"' && first != '\'' {
			t.Errorf("%+v is quoted, but begins with %q", n, written)
		}
	case (first == '|' || first == '>') && n.Value != written:
	case !strings.HasPrefix(n.Value, written):
		t.Errorf("%+v is written %q", n, written)
	}
}
