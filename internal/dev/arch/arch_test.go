// Package arch holds the direction of imports: a table of what is forbidden,
// each line with its reason, and a test that reads every file of the module.
package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const module = "tidegate.dev/tidegate"

func TestImports(t *testing.T) {
	testdep.SkipUnderRace(t)
	files := moduleFiles(t, "../../..")
	if len(files) < 10 {
		t.Fatalf("found %d files: is this still the root of the module?", len(files))
	}
	for _, v := range violations(t, table, files) {
		t.Error(v.text)
	}
}

// Each rule of the table is broken by a file here, so none of them is asleep.
func TestEveryRuleCanFail(t *testing.T) {
	broken := make([]bool, len(table))
	f := func(file, src string, wants int) {
		t.Helper()
		got := violations(t, table, map[string]string{file: "package p\n" + src})
		if len(got) != wants {
			t.Errorf("%s with %q: got %d violations %v, want %d", file, src, len(got), got, wants)
		}
		for _, v := range got {
			broken[v.rule] = true
		}
	}
	f("key.go", `import "github.com/x/y"`, 1)
	f("key.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("key_test.go", `import "tidegate.dev/tidegate/store/memory"`, 0)
	f("key.go", `import "crypto/sha256"`, 0)
	f("internal/algo/a.go", `import "tidegate.dev/tidegate"`, 0)
	f("internal/algo/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("internal/algo/a.go", `import "golang.org/x/time/rate"`, 1)
	f("internal/algo/a.go", `import "sync/atomic"`, 1)
	f("internal/algo/a.go", `import "net"`, 1)
	f("internal/algo/a.go", `import "time"; var zone = time.UTC`, 0)
	f("internal/algo/a.go", `import "time"; var start = time.Now()`, 1)
	f("internal/algo/a.go", `import clock "time"; var read = clock.Now`, 1)
	f("internal/algo/a.go", `import . "time"; var start = Now()`, 1)
	f("internal/algo/a.go", `func f() { go f() }`, 1)
	f("internal/algo/oracle/a_test.go", `import "time"; var start = time.Now()`, 0)
	f("store/memory/a.go", `import "tidegate.dev/tidegate/internal/algo"`, 0)
	f("store/memory/a.go", `import "tidegate.dev/tidegate/store/redis"`, 1)
	f("store/memory/a.go", `import "tidegate.dev/tidegate/httplimit"`, 1)
	f("store/memory/a.go", `import "github.com/x/y"`, 1)
	f("store/memory/a.go", `import "time"; var start = time.Now()`, 0)
	f("store/memory/a.go", `func f() { go f() }`, 1)
	f("store/redis/a.go", `import "github.com/x/y"`, 0)
	f("store/storetest/a.go", `import "testing"`, 0)
	f("httplimit/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("httplimit/a_test.go", `import "tidegate.dev/tidegate/store/memory"`, 0)
	f("httplimit/a.go", `import "tidegate.dev/tidegate/internal/lang/jsonvalue"`, 0)
	f("httplimit/a.go", `import "tidegate.dev/tidegate/internal/lang/jwt"`, 1)
	f("httplimit/a.go", `import "github.com/x/y"`, 1)
	f("client/a.go", `import "tidegate.dev/tidegate/httplimit"`, 0)
	f("client/a.go", `import "tidegate.dev/tidegate/fleet"`, 1)
	f("client/a_test.go", `import "tidegate.dev/tidegate/fleet"`, 0)
	f("client/a.go", `import "github.com/x/y"`, 1)
	f("internal/lang/route/a.go", `import "tidegate.dev/tidegate"`, 1)
	f("internal/lang/diag/a.go", `import "github.com/x/y"`, 1)
	f("internal/lang/yamltree/a.go", `import "tidegate.dev/tidegate"`, 1)
	f("internal/lang/apikey/a.go", `import "tidegate.dev/tidegate"`, 1)
	f("internal/lang/apikey/a.go", `import "tidegate.dev/tidegate/internal/lang/bounded"`, 0)
	f("internal/lang/yamltree/a.go", `import "github.com/x/y"`, 1)
	f("internal/lang/rulefile/a.go", `import "tidegate.dev/tidegate/rules"`, 1)
	f("rules/a.go", `import "tidegate.dev/tidegate/httplimit"`, 1)
	f("rules/ruletest/a.go", `import "tidegate.dev/tidegate/httplimit"`, 0)
	f("rules/envoy/a.go", `import "tidegate.dev/tidegate/rules"`, 1)
	f("internal/lang/domainfile/a.go", `import "tidegate.dev/tidegate/rules/envoy"`, 1)
	f("internal/chain/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("internal/chain/a.go", `import "tidegate.dev/tidegate/internal/chain/node"`, 1)
	f("store/redis/a.go", `import "tidegate.dev/tidegate/internal/chain"`, 0)
	f("store/redis/a.go", `import "tidegate.dev/tidegate/internal/chain/node"`, 1)
	f("internal/chain/queue/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("internal/front/gateway/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("internal/front/gateway/a.go", `import "tidegate.dev/tidegate/internal/front/rls"`, 1)
	f("internal/front/gateway/a.go", `import "tidegate.dev/tidegate/internal/front/gateway/proxy"`, 0)
	f("internal/front/admin/a.go", `import "tidegate.dev/tidegate/internal/front/gateway"`, 1)
	f("internal/front/listen/a.go", `import "tidegate.dev/tidegate/httplimit"`, 1)
	f("internal/front/listen/a.go", `import "net/http"`, 0)
	f("internal/telemetry/a.go", `import "tidegate.dev/tidegate/rules"`, 1)
	f("internal/telemetry/a.go", `import "github.com/prometheus/client_golang/prometheus"`, 0)
	f("internal/telemetry/a.go", `import "tidegate.dev/tidegate/internal/telemetry/outcome"`, 0)
	f("internal/telemetry/outcome/a.go", `import "tidegate.dev/tidegate/internal/telemetry"`, 1)
	f("internal/telemetry/logsink/a.go", `import "tidegate.dev/tidegate"`, 1)
	f("internal/serve/handover/a.go", `import "tidegate.dev/tidegate/internal/config"`, 1)
	f("fleet/a.go", `import "tidegate.dev/tidegate/store/redis"`, 0)
	f("fleet/a.go", `import "tidegate.dev/tidegate/rules"`, 1)
	f("internal/chain/registry/a.go", `import "tidegate.dev/tidegate/store/redis"`, 1)
	f("internal/chain/board/a.go", `import "tidegate.dev/tidegate/rules"`, 1)
	f("internal/chain/node/a.go", `import "tidegate.dev/tidegate/store/redis"`, 1)
	f("internal/chain/node/a.go", `import "tidegate.dev/tidegate/store/memory"`, 0)
	f("internal/chain/node/a.go", `import "tidegate.dev/tidegate/internal/chain/queue"`, 1)
	f("internal/chain/split/a.go", `import "tidegate.dev/tidegate/internal/chain/registry"`, 1)
	f("internal/chain/split/a.go", `import "tidegate.dev/tidegate/store/memory"`, 0)
	f("internal/chain/share/a.go", `import "tidegate.dev/tidegate/store/memory"`, 1)
	f("internal/chain/sim/a.go", `import "testing/synctest"`, 0)
	f("internal/cli/a.go", `import "tidegate.dev/tidegate/internal/chain/sim"`, 0)
	f("fleet/a.go", `import "tidegate.dev/tidegate/internal/chain/sim"`, 1)
	f("internal/front/rls/a.go", `import "tidegate.dev/tidegate/internal/front/gateway"`, 1)
	f("internal/front/rlqs/a.go", `import "tidegate.dev/tidegate/internal/front/rls"`, 1)
	f("internal/front/checkapi/a.go", `import "tidegate.dev/tidegate/internal/front/gateway"`, 1)
	f("internal/front/resp/a.go", `import "tidegate.dev/tidegate/internal/front/gateway"`, 1)
	f("rules/a.go", `import "tidegate.dev/tidegate/cmd/demo"`, 2)
	f("rules/a.go", `import "testing"`, 1)
	f("rules/a.go", `import "tidegate.dev/tidegate/store/storetest"`, 2)
	f("rules/a_test.go", `import "tidegate.dev/tidegate/bench/load"`, 1)
	f("cmd/demo/a.go", `import ("tidegate.dev/tidegate/httplimit"; "tidegate.dev/tidegate/store/memory")`, 0)

	for i, r := range table {
		if !broken[i] {
			t.Errorf("no file above breaks the rule for %v: not import %v, not use %v", r.from, r.not, r.use)
		}
	}
}

// moduleFiles reads the Go files below root, by slash path from there, without
// those of nested modules and of testdata.
func moduleFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && rel != ".":
			_, noModule := os.Stat(filepath.Join(name, "go.mod"))
			if noModule == nil || d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._") {
				return filepath.SkipDir
			}
		case strings.HasSuffix(rel, ".go"):
			src, err := os.ReadFile(name)
			files[filepath.ToSlash(rel)] = string(src)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// violation is a place where a rule, by its index, is broken.
type violation struct {
	rule int
	text string // position, what, and the reason
}

// violations finds where files break rules, whatever their build tags say.
func violations(t *testing.T, rules []rule, files map[string]string) []violation {
	t.Helper()
	var found []violation
	for name, src := range files {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		from := own(path.Dir(name))
		for i, r := range rules {
			if !matches(r.from, from) || strings.HasSuffix(name, "_test.go") && !r.tests {
				continue
			}
			for _, use := range append(imports(file), uses(file)...) {
				if matches(r.not, use.imported) || matches(r.use, use.name) {
					text := fmt.Sprintf("%s: %s must not %s\n\tbecause %s", fset.Position(use.pos), from, use, r.why)
					found = append(found, violation{i, text})
				}
			}
		}
	}
	return found
}

// use is what a file does at a place: it imports a package or uses a name.
type use struct {
	imported, name string
	pos            token.Pos
}

func (u use) String() string {
	if u.imported != "" {
		return "import " + u.imported
	}
	return "use " + u.name
}

func imports(file *ast.File) []use {
	var all []use
	for _, spec := range file.Imports {
		all = append(all, use{imported: normal(spec), pos: spec.Pos()})
	}
	return all
}

// uses gives go statements as "go" and the names of imported packages as
// "time.Now", also under another name of the import. A dot import of package
// time cannot be followed and counts as time.Now.
func uses(file *ast.File) []use {
	local := make(map[string]string) // name in this file: import path
	var all []use
	for _, spec := range file.Imports {
		imported := normal(spec)
		switch {
		case spec.Name == nil:
			local[path.Base(imported)] = imported
		case spec.Name.Name == "." && imported == "time":
			all = append(all, use{name: "time.Now", pos: spec.Pos()})
		default:
			local[spec.Name.Name] = imported
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, use{name: "go", pos: n.Pos()})
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && local[x.Name] != "" {
				all = append(all, use{name: local[x.Name] + "." + n.Sel.Name, pos: n.Pos()})
			}
		}
		return true
	})
	return all
}

// normal is the import path as the patterns write it.
func normal(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has let only strings through
	}
	if rel, ok := strings.CutPrefix(p+"/", module+"/"); ok {
		return own(strings.TrimSuffix(rel, "/"))
	}
	return p
}

// own is how patterns write the package in a directory of this module.
func own(dir string) string {
	if dir == "." || dir == "" {
		return "."
	}
	return "./" + dir
}

// matches reports whether the last of patterns that fits name lets it in.
func matches(patterns []string, name string) bool {
	in := false
	for _, p := range patterns {
		p, not := strings.CutPrefix(p, "!")
		if fits(p, name) {
			in = !not
		}
	}
	return in
}

func fits(pattern, name string) bool {
	if pattern == "module" {
		host, _, _ := strings.Cut(name, "/")
		return host != "." && strings.Contains(host, ".")
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	return pattern == name
}
