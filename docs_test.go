package tidegate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// traps is how many docs/traps.md owes a test for.
const traps = 26

var cited = regexp.MustCompile("`([^`]+)`")

// Every test that docs/traps.md names exists, and every trap names one.
func TestTrapsNameTheirTests(t *testing.T) {
	raw, err := os.ReadFile("docs/traps.md")
	if err != nil {
		t.Fatal(err)
	}
	page, ours, _ := strings.Cut(string(raw), "## Found in ours")
	exists := testsOfTheTree(t)
	check := func(text string) (found int) {
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			name := m[1]
			if !strings.HasPrefix(name, "store/storetest: ") && !looksLikeTest.MatchString(name) {
				continue
			}
			found++
			if !exists[name] {
				t.Errorf("there is no test %s", name)
			}
		}
		return found
	}
	sections := map[int]string{}
	for _, s := range strings.Split(page, "\n## ")[1:] {
		number, _, _ := strings.Cut(s, ".")
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("a section has no number: %.40q", s)
		}
		sections[n] = s
	}
	for n := 1; n <= traps; n++ {
		if check(sections[n]) == 0 {
			t.Errorf("trap %d names no test", n)
		}
	}
	for _, row := range strings.Split(ours, "\n| ")[2:] { // behind the head and its rule
		if check(row) == 0 {
			t.Errorf("a fault of ours names no test: %.60q", row)
		}
	}
}

var looksLikeTest = regexp.MustCompile(`^[\w/]+\.(Test|Fuzz)\w+$`)

// testsOfTheTree are the names of all tests, as docs/traps.md writes them.
func testsOfTheTree(t *testing.T) map[string]bool {
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" || strings.Contains(file, "testdata") {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		if pkg == "." {
			pkg = "tidegate"
		}
		switch {
		case strings.HasSuffix(file, "_test.go"):
			addTests(names, pkg, parse(t, file))
		case pkg == "store/storetest":
			addBehaviours(names, parse(t, file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	traces, err := filepath.Glob("store/storetest/testdata/*.trace")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range traces {
		names["store/storetest: trace/"+strings.TrimSuffix(filepath.Base(file), ".trace")] = true
	}
	return names
}

func parse(t *testing.T, file string) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func addTests(names map[string]bool, pkg string, f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
			names[pkg+"."+fn.Name.Name] = true
		}
	}
}

// addBehaviours finds the rows {"name", testSomething} of the suite's tables; a
// contest runs under "concurrent/".
func addBehaviours(names map[string]bool, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		row, ok := n.(*ast.CompositeLit)
		if !ok || len(row.Elts) != 2 {
			return true
		}
		name, isName := row.Elts[0].(*ast.BasicLit)
		run, isFunc := row.Elts[1].(*ast.Ident)
		if !isName || !isFunc || name.Kind != token.STRING {
			return true
		}
		title, _ := strconv.Unquote(name.Value)
		switch {
		case strings.HasPrefix(run.Name, "test"):
			names["store/storetest: "+title] = true
		case strings.HasPrefix(run.Name, "contest"):
			names["store/storetest: concurrent/"+title] = true
		}
		return true
	})
}
