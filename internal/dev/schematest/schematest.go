// Package schematest holds files to a JSON Schema as an editor would, with a validator that knows
// nothing of ours, for tests of every schema that tidegate prints. Start with [New].
package schematest

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Schema is one that a validator has read.
type Schema struct{ resolved *jsonschema.Resolved }

// New has a validator read a schema.
func New(t testing.TB, schema map[string]any) *Schema {
	t.Helper()
	text, err := json.Marshal(schema)
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
	return &Schema{resolved}
}

// Validate returns why a file does not fit.
func (s *Schema) Validate(root *yamltree.Node) error {
	return s.resolved.Validate(root.Plain(asEditorsRead))
}

var (
	yamlInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// asEditorsRead returns a scalar, or nothing, as YAML 1.2 has it, in which 5 is a number and true a bool.
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

// scalars are what a word may be replaced with.
var scalars = []string{"5", "0", "true", "x", "5m", "10%", "100/minute", "unlimited", "in list", "api", "ip", "429", "", "1.5", "2x", "null"}

var word = regexp.MustCompile(`[\w./%*"-]+`)

// Change replaces one word of a file at random, and returns the file, its tree and the line; the
// tree is nil if the line has no word, or the file is no longer YAML.
func Change(random *rand.Rand, name string, text []byte) (changed []byte, root *yamltree.Node, line string) {
	lines := strings.Split(string(text), "\n")
	at := random.IntN(len(lines))
	places := word.FindAllStringIndex(lines[at], -1)
	if len(places) == 0 {
		return nil, nil, ""
	}
	p := places[random.IntN(len(places))]
	lines[at] = lines[at][:p[0]] + scalars[random.IntN(len(scalars))] + lines[at][p[1]:]
	changed = []byte(strings.Join(lines, "\n"))
	root, problems := yamltree.Parse(name, changed)
	if problems.HasErrors() {
		root = nil
	}
	return changed, root, lines[at]
}
