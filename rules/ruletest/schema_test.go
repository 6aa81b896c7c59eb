package ruletest

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/schematest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Every test file of the project fits the schema, and what does not fit cannot be read; nor can
// those that are changed in one place at random.
func TestSchemaFitsEveryFile(t *testing.T) {
	testdep.SkipUnderRace(t)
	s := schematest.New(t, Schema())
	random := rand.New(rand.NewPCG(1, 2))
	files, bad, both := 0, 0, 0
	f := func(name string, text []byte, root *yamltree.Node) (wrong bool) {
		t.Helper()
		err := s.Validate(root)
		_, problems := parse(name, text)
		wrong = problems.HasErrors()
		if err != nil && !wrong {
			t.Fatalf("%s can be read, and the schema refuses it: %v\n%s", name, err, text)
		}
		if wrong {
			bad++
			if err != nil {
				both++
			}
		}
		return wrong
	}
	for _, folder := range []string{"../../docs", "../../deploy"} {
		err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(name, "_test.yaml") || strings.Contains(name, "prometheus") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			root, problems := yamltree.Parse(name, text)
			if problems.HasErrors() || f(name, text, root) {
				t.Errorf("%s cannot be read", name)
				return nil
			}
			files++
			for range 40 {
				if changed, root, line := schematest.Change(random, name, text); root != nil {
					f(name+" with the line "+line, changed, root)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 || bad < 100 || both < bad/4 {
		t.Errorf("%d files, %d bad changes of which the schema refuses %d", files, bad, both)
	}
}

// What the schema says of each word.
func TestSchemaOfWords(t *testing.T) {
	s := schematest.New(t, Schema())
	f := func(fits bool, text string) {
		t.Helper()
		root, problems := yamltree.Parse("x_test.yaml", []byte(text))
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		err := s.Validate(root)
		if (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
		if _, problems := parse("x_test.yaml", []byte(text)); problems.HasErrors() == fits {
			t.Errorf("%s: the schema and the reader differ: %v", text, problems)
		}
	}
	f(true, "rules: [a.yaml, b/]\ncases: { steps: { request: GET /, want: ok } }")
	f(true, "rules: a.yaml\ncases: [{ name: 5, start: '2026-12-01T00:00:00Z', steps: [{ at: 0, request: POST h/x, as: { user: 42, org: , ip: 192.0.2.1 }, headers: { X-A: true }, form: { a: [1, b, ], b: c }, cost: '3', times: 2, response: { status: 500, cost: 0, after: 1.5h }, want: [ok, refused], rule: api, remaining: 0, retry_after: 15m, wait: 0s, answer: 429 }, { at: 1h1m, reload: b.yaml }] }]")
	f(true, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, body: [{ a: ~ }], want: soft, shadow: x, reset_after: 1m }, { request: GET /, multipart: { a: 1 }, want: denied }] }]")
	f(true, "rules: null\ncases: [{ name: null, steps: [{ request: GET /, want: ok, rule: ~ }] }]") // words like others
	f(false, "rules: a.yaml")
	f(false, "cases: [{ steps: [{ request: GET /, want: ok }] }]")
	f(false, "rules: a.yaml\ncases: []")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET / }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ want: ok }] }]")
	f(false, "rules: a.yaml\ncases: [{ step: [{ request: GET /, want: ok }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, want: maybe }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, want: ok, times: 0 }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, want: ok, at: 5 }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, want: ok, as: [user] }] }]")
	f(false, "rules: a.yaml\ncases: [{ steps: [{ request: GET /, want: ok, response: { status: 99 } }] }]")
}
