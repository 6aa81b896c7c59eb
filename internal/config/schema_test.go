package config

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/schematest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// loadText reads a configuration whose files are all there.
func loadText(text []byte) diag.List {
	_, problems := Load(Options{File: defaultFile, Environ: []string{}, Stat: everywhere, OpenFiles: 1024, ReadFile: func(string) ([]byte, error) { return text, nil }})
	return problems
}

// configFiles are all configurations of the project: those of docs and deploy, and those of the cases here.
func configFiles(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, pattern := range []string{"../../docs/config-servers/*.yaml", "../../deploy/*/tidegate.yaml", "../../deploy/*/*/tidegate.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if all[name], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(all) < 12 {
		t.Errorf("found %d examples: are they still there?", len(all))
	}
	cases, err := fs.Glob(os.DirFS("testdata"), "*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cases {
		for _, p := range readParts(t, filepath.Join("testdata", name)) {
			if filepath.Base(p.name) == defaultFile {
				all[name+" "+p.name] = []byte(p.text)
			}
		}
	}
	return all
}

// Every configuration that loads fits the schema, and what does not fit does not load; nor do
// those that are changed in one place at random.
func TestSchemaFitsEveryFile(t *testing.T) {
	testdep.SkipUnderRace(t)
	s := schematest.New(t, Schema())
	random := rand.New(rand.NewPCG(1, 2))
	good, bad, both := 0, 0, 0
	f := func(name string, text []byte, root *yamltree.Node) {
		t.Helper()
		err, wrong := s.Validate(root), loadText(text).HasErrors()
		switch {
		case err != nil && !wrong:
			t.Fatalf("%s loads, and the schema refuses it: %v\n%s", name, err, text)
		case err != nil:
			both++
		}
		if wrong {
			bad++
		} else {
			good++
		}
	}
	files := configFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		root, problems := yamltree.Parse(name, text)
		if root == nil || problems.HasErrors() {
			continue
		}
		if strings.HasPrefix(name, "../") && loadText(text).HasErrors() {
			t.Errorf("%s is an example and does not load: %v", name, loadText(text))
		}
		f(name, text, root)
		for range 100 {
			if changed, root, line := schematest.Change(random, name, text); root != nil {
				f(name+" with the line "+line, changed, root)
			}
		}
	}
	if good < 100 || bad < 100 || both < bad/4 {
		t.Errorf("%d good files, %d bad ones of which the schema refuses %d", good, bad, both)
	}
}

// Every setting is in the schema, with what the documentation says; another word is not.
func TestSchemaHasEverySetting(t *testing.T) {
	s := schematest.New(t, Schema())
	file := func(path, value string) string {
		var b strings.Builder
		words := strings.Split(path, ".")
		for i, word := range words {
			b.WriteString(strings.Repeat("  ", i) + word + ":")
			if i < len(words)-1 {
				b.WriteString("\n")
			}
		}
		return b.String() + " " + value + "\n"
	}
	fits := func(path, value string, want bool) {
		t.Helper()
		text := file(path, value)
		root, problems := yamltree.Parse("tidegate.yaml", []byte(text))
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		if err := s.Validate(root); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, one := range table {
		fits(one.path, "'"+one.example+"'", true)
		fits(one.path+"x", "'"+one.example+"'", false)
		fits(one.path, "{ odd: { odd: 1 } }", false)
		if !one.slot.many {
			fits(one.path, "["+"'"+one.example+"']", false)
		}
		if len(one.slot.words) > 0 {
			fits(one.path, "some-other-word", false)
		}
	}
	fits("upstreams", "[http://a, { url: http://b }]", true)
	fits("upstreams", "[{ uri: http://b }]", false)
	fits("store", "{ redis: redis://h }", true)
	fits("rules", "[a.yaml, redis://h]", true)
	fits("rules", "[[a.yaml]]", false)
}
