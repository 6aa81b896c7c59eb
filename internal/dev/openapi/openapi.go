// Package openapi compares what a handler answers with its description in an OpenAPI file. It
// is for tests: it knows the words of ours and reports all others. Start with [Parse].
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Document is an OpenAPI file as a tree of maps, lists and strings.
type Document struct{ root map[string]any }

// Parse reads an OpenAPI file, and panics if it is not YAML.
func Parse(src []byte) *Document {
	root, problems := yamltree.Parse("openapi.yaml", src)
	if len(problems) > 0 {
		panic(problems.Error())
	}
	return &Document{root.Plain(text).(map[string]any)}
}

// text returns a scalar as it is written. Where nothing is, it is described as anything.
func text(n *yamltree.Node) any {
	if n.Kind == yamltree.Null {
		return map[string]any{}
	}
	return n.Value
}

// At follows names from the root, and references wherever they are.
func (d *Document) At(names ...string) map[string]any { return d.at(d.root, names...) }

func (d *Document) at(v any, names ...string) map[string]any {
	m, _ := v.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		m = d.At(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if len(names) == 0 || m == nil {
		return m
	}
	return d.at(m[names[0]], names[1:]...)
}

// holds returns where a value breaks a schema; "" if it does not.
func (d *Document) holds(schema map[string]any, v any, where string) string {
	for word := range schema {
		switch word {
		case "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum", "maximum", "oneOf",
			"minItems", "maxItems", "minLength", "description", "default":
		default:
			return where + ": the test does not know the word " + word
		}
	}
	if options, ok := schema["oneOf"].([]any); ok {
		return d.holdsOne(options, v, where)
	}
	if want, ok := schema["type"]; ok && !slices.ContainsFunc(list(want), func(name string) bool { return isA(name, v) }) {
		return fmt.Sprintf("%s is %v (%T), not %v", where, v, v, want)
	}
	if want, ok := schema["const"]; ok && fmt.Sprint(v) != want {
		return fmt.Sprintf("%s is %v, not %v", where, v, want)
	}
	if want, ok := schema["enum"]; ok && !slices.Contains(list(want), fmt.Sprint(v)) {
		return fmt.Sprintf("%s is %v, not one of %v", where, v, want)
	}
	switch v := v.(type) {
	case json.Number:
		return holdsNumber(schema, v, where)
	case string:
		if n, ok := number(schema, "minLength"); ok && float64(len(v)) < n {
			return where + " is too short"
		}
	case []any:
		return d.holdsItems(schema, v, where)
	case map[string]any:
		return d.holdsObject(schema, v, where)
	}
	return ""
}

// holdsOne returns why a value does not fit exactly one of the options.
func (d *Document) holdsOne(options []any, v any, where string) string {
	var fits []int
	var whys []string
	for i, o := range options {
		if why := d.holds(d.at(o), v, where); why == "" {
			fits = append(fits, i)
		} else {
			whys = append(whys, why)
		}
	}
	if len(fits) != 1 {
		return fmt.Sprintf("%s fits %v of oneOf: %q", where, fits, whys)
	}
	return ""
}

func holdsNumber(schema map[string]any, n json.Number, where string) string {
	is, _ := n.Float64()
	if low, ok := number(schema, "minimum"); ok && is < low {
		return fmt.Sprintf("%s is %v, below %v", where, n, low)
	}
	if high, ok := number(schema, "maximum"); ok && is > high {
		return fmt.Sprintf("%s is %v, above %v", where, n, high)
	}
	return ""
}

func (d *Document) holdsItems(schema map[string]any, l []any, where string) string {
	low, hasLow := number(schema, "minItems")
	high, hasHigh := number(schema, "maxItems")
	if hasLow && float64(len(l)) < low || hasHigh && float64(len(l)) > high {
		return fmt.Sprintf("%s has %d items", where, len(l))
	}
	for i := range l {
		if why := d.holds(d.at(schema["items"]), l[i], fmt.Sprintf("%s[%d]", where, i)); why != "" {
			return why
		}
	}
	return ""
}

func (d *Document) holdsObject(schema, m map[string]any, where string) string {
	for _, name := range list(schema["required"]) {
		if _, ok := m[name]; !ok {
			return where + " has no " + name
		}
	}
	for name, value := range m {
		inner := d.at(d.at(schema["properties"])[name])
		if inner == nil {
			switch more := schema["additionalProperties"].(type) {
			case string:
				return where + " has " + name + ", which is not described"
			case map[string]any:
				inner = d.at(more)
			default:
				continue
			}
		}
		if why := d.holds(inner, value, where+"."+name); why != "" {
			return why
		}
	}
	return ""
}

func list(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, item.(string))
		}
		return all
	}
	return nil
}

func number(schema map[string]any, name string) (float64, bool) {
	text, ok := schema[name].(string)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

func isA(name string, v any) bool {
	switch v := v.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		return name == "number" || name == "integer" && !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

// Breaks returns where an answer to a request for a path is not as the file describes it; "" if
// it is.
func (d *Document) Breaks(method, path string, w *httptest.ResponseRecorder) string {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	responses := d.At("paths", path, strings.ToLower(method), "responses")
	if responses == nil {
		if w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden {
			return "" // nothing is described there
		}
		return fmt.Sprintf("%s %s is not described, and answered %d", method, path, w.Code)
	}
	response := d.at(responses[strconv.Itoa(w.Code)])
	if response == nil {
		if response = d.at(responses["default"]); w.Code < 400 || w.Code > 599 {
			return fmt.Sprintf("%s %s: the status %d is not described", method, path, w.Code)
		}
	}
	for name, h := range d.at(response["headers"]) {
		values := w.Header().Values(name)
		if len(values) == 0 {
			if d.at(h)["required"] == "true" {
				return path + ": there is no header " + name
			}
			continue
		}
		if why := d.holds(d.at(d.at(h)["schema"]), values[0], name); why != "" {
			return why
		}
	}
	return d.breaksBody(method, path, d.at(response["content"]), w)
}

func (d *Document) breaksBody(method, path string, content map[string]any, w *httptest.ResponseRecorder) string {
	body := w.Body.Bytes()
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	if _, ok := content[kind]; !ok && content["*/*"] != nil && kind != "application/json" { // as rules say
		kind = "*/*"
	}
	switch {
	case len(content) == 0 && len(body) == 0:
		return ""
	case content[kind] == nil:
		return fmt.Sprintf("%s %s: the type %q of status %d is not described", method, path, kind, w.Code)
	case d.at(content[kind])["schema"] == nil:
		return ""
	}
	from := json.NewDecoder(strings.NewReader(string(body)))
	from.UseNumber()
	var v any
	if err := from.Decode(&v); err != nil || from.More() {
		return fmt.Sprintf("%s %s: %q is not JSON: %v", method, path, body, err)
	}
	return d.holds(d.at(d.at(content[kind])["schema"]), v, path)
}
