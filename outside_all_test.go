package tidegate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// publicPackages are the folders of packages that programs outside can import.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch name := d.Name(); {
		case dir != "." && (name == "internal" || name == "testdata" || name == "cmd" || strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case dir != ".":
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own
			}
		}
		if sources, err := filepath.Glob(filepath.Join(dir, "*.go")); err == nil && len(sources) > 0 {
			dirs = append(dirs, filepath.ToSlash(dir))
		}
		return nil
	})
	if err != nil || len(dirs) < 5 {
		t.Fatalf("public packages: %q, %v", dirs, err)
	}
	return dirs
}

// exportedTypes are the names of the types of a package that others can see.
func exportedTypes(t *testing.T, dir string) (name string, types []string) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		name = file.Name.Name
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, s := range d.Specs {
					if id := s.(*ast.TypeSpec).Name; id.IsExported() {
						types = append(types, id.Name)
					}
				}
			}
		}
	}
	return name, types
}

// A program of another module can name every type of every public package.
func TestOutsideNamesEveryType(t *testing.T) {
	program := testdep.Need(t, "go")
	repo, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	var imports, uses strings.Builder
	for i, dir := range publicPackages(t) {
		_, types := exportedTypes(t, dir)
		if len(types) > 0 {
			fmt.Fprintf(&imports, "import p%d %q\n", i, path.Join("tidegate.dev/tidegate", dir))
		}
		for _, name := range types {
			fmt.Fprintf(&uses, "var _ *p%d.%s\n", i, name)
		}
	}
	if n := strings.Count(uses.String(), "\n"); n < 60 {
		t.Fatalf("only %d types were found", n)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.go"), []byte("package all\n"+imports.String()+uses.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// With the requirements of this module, go asks for none that are not downloaded for it.
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "edit", "-module", "outside", "-require", "tidegate.dev/tidegate@v0.0.0", "-replace", "tidegate.dev/tidegate=" + repo},
		{"vet", "."},
	} {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", testdep.WithoutCgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// What a public package shows has no type of an internal one in it, which nobody outside
// could name; aliases give such types a name.
func TestPublicNamesNoInternalType(t *testing.T) {
	program := testdep.Need(t, "go")
	internal, err := filepath.Glob("internal/*")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("internal/*/*")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, dir := range append(internal, deeper...) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			names = append(names, filepath.Base(dir))
		}
	}
	qualified := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\.[A-Z]\w*`)
	seen := 0
	for _, dir := range publicPackages(t) {
		out, err := exec.Command(program, "doc", "-all", "./"+dir).Output()
		if err != nil {
			t.Fatalf("go doc ./%s: %v", dir, err)
		}
		for line := range strings.Lines(string(out)) {
			declared := strings.HasPrefix(line, "func ") || strings.HasPrefix(line, "type ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "var ")
			if !declared || regexp.MustCompile(`^type \w+ = `).MatchString(line) {
				continue
			}
			seen++
			code, _, _ := strings.Cut(line, "//")
			if found := qualified.FindAllString(code, -1); len(found) > 0 && !slices.Contains(known, strings.TrimSpace(code)) {
				t.Errorf("%s: %s", dir, strings.TrimSpace(line))
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d declarations were looked at", seen)
	}
}

// known are constants, which have no type of their own.
var known = []string{"Error   = diag.Error", "Warning = diag.Warning"}
