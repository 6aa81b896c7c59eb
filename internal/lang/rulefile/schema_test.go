package rulefile

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/schematest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// ruleFiles are all rule files of the project that are YAML: examples, the cookbook, those of deploy, and those
// that are there to be wrong.
func ruleFiles(t *testing.T) map[string]*yamltree.Node {
	t.Helper()
	all := make(map[string]*yamltree.Node)
	for _, folder := range []string{"testdata/good", "testdata/bad", "../../../docs/examples", "../../../docs/cookbook", "../../../deploy", "../../../rules/testdata"} {
		err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !InFolder(filepath.Base(name)) {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			root, problems := yamltree.Parse(name, text)
			if root == nil || problems.HasErrors() || !slices.ContainsFunc(root.Fields, func(f yamltree.Field) bool { return f.Key.Value == "rules" || f.Key.Value == "version" }) {
				return nil // other files, and what no editor can read
			}
			all[name] = root
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return all
}

// refused reports whether the rule file of that name has errors.
func refused(name string) bool {
	_, problems := Read(name, Options{})
	return problems.HasErrors()
}

// Every rule file that loads fits the schema, and what does not fit does not load.
func TestSchemaFitsEveryFile(t *testing.T) {
	s := schematest.New(t, Schema())
	good, bad, both := 0, 0, 0
	for name, root := range ruleFiles(t) {
		err, wrong := s.Validate(root), refused(name)
		switch {
		case err != nil && !wrong:
			t.Errorf("%s loads, and the schema refuses it: %v", name, err)
		case err != nil:
			both++
		}
		if wrong {
			bad++
		} else {
			good++
		}
	}
	if good < 60 || bad < 60 || both < bad/4 {
		t.Errorf("%d good files, %d bad ones of which the schema refuses %d: are they still there?", good, bad, both)
	}
}

// Files that are changed in one place at random: what the schema refuses is refused.
func TestSchemaRefusesOnlyWhatIsWrong(t *testing.T) {
	testdep.SkipUnderRace(t)
	s := schematest.New(t, Schema())
	random := rand.New(rand.NewPCG(1, 2))
	var goodNames []string
	files := ruleFiles(t)
	for name := range files {
		if strings.Contains(name, "docs/") && !refused(name) {
			goodNames = append(goodNames, name)
		}
	}
	slices.Sort(goodNames)
	found := 0
	for range 3000 {
		name := goodNames[random.IntN(len(goodNames))]
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		changed, root, line := schematest.Change(random, name, text)
		if root == nil {
			continue
		}
		if err := s.Validate(root); err != nil {
			found++
			if _, problems := Parse(name, changed, Options{}); !problems.HasErrors() {
				t.Fatalf("%s with the line %q loads, and the schema refuses it: %v", name, line, err)
			}
		}
	}
	if found < 100 {
		t.Errorf("the schema refused %d changes: does it refuse anything?", found)
	}
}

// Every word of the language has a value in the schema, and every choice of words is the parser's.
func TestSchemaHasEveryWord(t *testing.T) {
	called := make(map[string]bool)
	for _, p := range places {
		if name := schemaName(p); called[name] || schemaValues[name] != nil {
			t.Errorf("two parts of the schema are called %s", name)
		} else {
			called[name] = true
		}
		for _, word := range p.words {
			if schemaField(p, word) == nil {
				t.Errorf("the schema does not say what `%s` of %s may be", word, p.name)
			}
		}
		for word := range schemaFields[p] {
			if !slices.Contains(p.words, word) {
				t.Errorf("the schema has `%s` of %s, which there is not", word, p.name)
			}
		}
		for _, word := range schemaNeeds[p] {
			if !slices.Contains(p.words, word) {
				t.Errorf("the schema needs `%s` of %s, which there is not", word, p.name)
			}
		}
	}
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	for field, values := range choices(t) {
		for _, v := range values {
			if !strings.Contains(string(text), strconv.Quote(v)) {
				t.Errorf("the schema has no `%s` of %s", v, field)
			}
		}
	}
}
