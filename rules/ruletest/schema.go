package ruletest

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// SchemaID names the JSON Schema of test files.
const SchemaID = "https://tidegate.dev/schema/tests.json"

// everyMap is a test file with a map of each kind.
const everyMap = "rules: rules.yaml\ncases: [{ steps: [{ request: GET /, response: { status: 200 }, want: ok }] }]\n"

// needs has, for each map with required fields, the sets of them: a map must have all fields of one
// set.
var needs = map[string][][]string{
	"a test file": {{"rules", "cases"}},
	"a case":      {{"steps"}},
	"a step":      {{"request", "want"}, {"reload"}},
}

// Schema returns the language of test files as a JSON Schema (draft 2020-12), for editors. Its
// words are those that [Read] accepts. It accepts every valid test file, and some invalid ones:
// with steps that go back in time, or names that the rules do not have.
func Schema() map[string]any {
	defs := make(map[string]any)
	r := reader{met: func(what string, known []field) {
		defs[defName(what)] = mapOf(what, known)
	}}
	root, _ := yamltree.Parse("all.yaml", []byte(everyMap))
	r.file(&File{}, root)
	s := defs[defName("a test file")].(map[string]any)
	delete(defs, defName("a test file"))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Tidegate rule test"
	s["$defs"] = defs
	return s
}

func defName(what string) string { return strings.ReplaceAll(what, " ", "-") }

// mapOf describes a map with these fields.
func mapOf(what string, known []field) map[string]any {
	fields := make(map[string]any)
	for _, f := range known {
		fields[f.name] = f.may()
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": fields, "description": what}
	var sets []any
	for _, words := range needs[what] {
		sets = append(sets, map[string]any{"required": words})
	}
	if sets != nil {
		s["anyOf"] = sets
	}
	return s
}

// shape describes what a value may be. In YAML, 5 is a number and 5s a string; a test file takes
// both as text, with or without quotes.
type shape func() map[string]any

// one describes a map of that kind.
func one(what string) shape {
	return func() map[string]any { return map[string]any{"$ref": "#/$defs/" + defName(what)} }
}

// some describes a map of that kind, or a list of such maps.
func some(what string) shape { return func() map[string]any { return oneOrMore(one(what)()) } }

func oneOrMore(item map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{item, map[string]any{"type": "array", "minItems": 1, "items": item}}}
}

func someTexts() map[string]any { return oneOrMore(aText()) }
func aRequest() map[string]any {
	return map[string]any{"type": "string", "pattern": "/", "examples": []string{"POST /posts", "GET example.com/search?q=x"}}
}

func anInstant() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[0-9]{4}-", "examples": []string{"2026-12-01T00:00:00Z"}}
}
func anything() map[string]any { return map[string]any{} }

// aDuration returns what [time.ParseDuration] reads.
func aDuration() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": []int{0}},
		map[string]any{"type": "string", "pattern": `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`},
	}, "examples": []string{"1.5s", "15m", "24h"}}
}

func wholeNumber(least, most int64) shape {
	return func() map[string]any {
		return map[string]any{"type": []string{"integer", "string"}, "minimum": least, "maximum": most, "pattern": "^[-+]?[0-9]+$"}
	}
}

// aText describes any text: editors take the word null for no value.
func aText() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean", "null"}}
}

func namedTexts() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": aText()}
}

func formFields() map[string]any {
	values := map[string]any{"type": "array", "items": aText()}
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"anyOf": []any{aText(), values}}}
}

func someOutcomes() map[string]any {
	return oneOrMore(map[string]any{"enum": slices.Clone(outcomes)})
}
