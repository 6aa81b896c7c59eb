package rulefile

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// schema is the language as a validator that knows nothing of ours reads it.
func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

var (
	yamlInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// asEditorsRead is a scalar, or nothing, as YAML 1.2 has it, in which 5 is a number and true a bool.
func asEditorsRead(n *yamltree.Node) any {
	switch v := n.Value; {
	case n.Kind == yamltree.Null:
		return nil
	case n.Quoted:
	case v == "true" || v == "false":
		return v == "true"
	case v == "null" || v == "~" || v == "":
		return nil
	case yamlInt.MatchString(v) || yamlFloat.MatchString(v):
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f
		}
	}
	return n.Value
}

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
	s := schema(t)
	good, bad, both := 0, 0, 0
	for name, root := range ruleFiles(t) {
		err, wrong := s.Validate(root.Plain(asEditorsRead)), refused(name)
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
	s := schema(t)
	random := rand.New(rand.NewPCG(1, 2))
	var goodNames []string
	files := ruleFiles(t)
	for name := range files {
		if strings.Contains(name, "docs/") && !refused(name) {
			goodNames = append(goodNames, name)
		}
	}
	slices.Sort(goodNames)
	scalars := []string{"5", "0", "true", "x", "5m", "10%", "100/minute", "unlimited", "in list", "api", "ip", "429", "", "1.5", "2x"}
	found := 0
	for range 3000 {
		name := goodNames[random.IntN(len(goodNames))]
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		at := random.IntN(len(lines))
		word := regexp.MustCompile(`[\w./%*"-]+`)
		places := word.FindAllStringIndex(lines[at], -1)
		if len(places) == 0 {
			continue
		}
		p := places[random.IntN(len(places))]
		lines[at] = lines[at][:p[0]] + scalars[random.IntN(len(scalars))] + lines[at][p[1]:]
		changed := []byte(strings.Join(lines, "\n"))
		root, problems := yamltree.Parse(name, changed)
		if root == nil || problems.HasErrors() {
			continue
		}
		if err := s.Validate(root.Plain(asEditorsRead)); err != nil {
			found++
			if _, problems := Parse(name, changed, Options{}); !problems.HasErrors() {
				t.Fatalf("%s with line %d as %q loads, and the schema refuses it: %v", name, at+1, lines[at], err)
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
