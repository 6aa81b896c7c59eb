// Package reference tests pages of docs/reference against the code of more than one package.
package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const headersPage = "docs/reference/headers.md"

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// isName is what the name of a header looks like that code compares or writes.
var isName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(-[A-Z][a-zA-Z0-9]*)*$`)

// The page has every header that a front end writes or reads by itself, and no other.
func TestHeadersPage(t *testing.T) {
	t.Chdir("../../..")
	raw, err := os.ReadFile(headersPage)
	if err != nil {
		t.Fatal(err)
	}
	page := make(map[string]bool)
	for _, m := range firstCell.FindAllStringSubmatch(string(raw), -1) {
		page[textproto.CanonicalMIMEHeaderKey(m[1])] = true
	}
	code, mentioned := headersOf(t, "httplimit", "internal/front", "internal/serve")
	if len(code) < 20 {
		t.Fatalf("found %d headers in the code: is it still written so?", len(code))
	}
	for name, where := range code {
		if !page[name] {
			t.Errorf("%s does not explain %s, which is used at %s", headersPage, name, where)
		}
	}
	for name := range page {
		if !mentioned[name] {
			t.Errorf("%s explains %s, which no code mentions", headersPage, name)
		}
	}
}

// headersOf finds the names of headers in the code of folders: indexes of maps, arguments of
// Set, Add, Get, Values, Del and delete, and constants whose name ends in Header. mentioned has all
// literals that look like one.
func headersOf(t *testing.T, folders ...string) (found map[string]string, mentioned map[string]bool) {
	found, mentioned = make(map[string]string), make(map[string]bool)
	fset := token.NewFileSet()
	note := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if text, _ := strconv.Unquote(lit.Value); isName.MatchString(text) {
			found[textproto.CanonicalMIMEHeaderKey(text)] = fset.Position(lit.Pos()).String()
		}
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IndexExpr:
					note(n.Index)
				case *ast.CallExpr:
					if fn, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 && strings.Contains(" Set Add Get Values Del set ", " "+fn.Sel.Name+" ") {
						note(n.Args[0])
					}
					if fn, ok := n.Fun.(*ast.Ident); ok && fn.Name == "delete" {
						note(n.Args[1])
					}
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if strings.HasSuffix(name.Name, "Header") && i < len(n.Values) {
							note(n.Values[i])
						}
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && isName.MatchString(text) {
						mentioned[textproto.CanonicalMIMEHeaderKey(text)] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found, mentioned
}
