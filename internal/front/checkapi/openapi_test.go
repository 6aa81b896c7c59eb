package checkapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// document is the OpenAPI file as a tree of maps, lists and strings.
var document = sync.OnceValue(func() map[string]any {
	root, problems := yamltree.Parse("openapi.yaml", description)
	if len(problems) > 0 {
		panic(problems.Error())
	}
	return plain(root).(map[string]any)
})

func plain(n *yamltree.Node) any {
	switch n.Kind {
	case yamltree.Map:
		m := make(map[string]any)
		for _, f := range n.Fields {
			m[f.Key.Value] = plain(f.Value)
		}
		return m
	case yamltree.List:
		var l []any
		for _, item := range n.Items {
			l = append(l, plain(item))
		}
		return l
	case yamltree.Scalar:
		return n.Value
	}
	return map[string]any{}
}

// at follows names from the root, and references wherever they are.
func at(v any, names ...string) map[string]any {
	m, _ := v.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		m = at(document(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if len(names) == 0 || m == nil {
		return m
	}
	return at(m[names[0]], names[1:]...)
}

// holds says where a value breaks a schema; "" if it does not.
func holds(schema map[string]any, v any, where string) string {
	for word := range schema {
		switch word {
		case "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum", "maximum", "oneOf",
			"minItems", "maxItems", "minLength", "description", "default":
		default:
			return where + ": the test does not know the word " + word
		}
	}
	if options, ok := schema["oneOf"].([]any); ok {
		var fits []int
		var whys []string
		for i, o := range options {
			if why := holds(at(o), v, where); why == "" {
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
	if want, ok := schema["type"]; ok && !slices.ContainsFunc(list(want), func(name string) bool { return isA(name, v) }) {
		return fmt.Sprintf("%s is %v (%T), not %v", where, v, v, want)
	}
	if want, ok := schema["const"]; ok && fmt.Sprint(v) != want {
		return fmt.Sprintf("%s is %v, not %v", where, v, want)
	}
	if want, ok := schema["enum"]; ok && !slices.Contains(list(want), fmt.Sprint(v)) {
		return fmt.Sprintf("%s is %v, not one of %v", where, v, want)
	}
	if n, ok := v.(json.Number); ok {
		is, _ := n.Float64()
		if low, ok := number(schema, "minimum"); ok && is < low {
			return fmt.Sprintf("%s is %v, below %v", where, v, low)
		}
		if high, ok := number(schema, "maximum"); ok && is > high {
			return fmt.Sprintf("%s is %v, above %v", where, v, high)
		}
	}
	if s, ok := v.(string); ok {
		if n, ok := number(schema, "minLength"); ok && float64(len(s)) < n {
			return where + " is too short"
		}
	}
	if l, ok := v.([]any); ok {
		low, hasLow := number(schema, "minItems")
		high, hasHigh := number(schema, "maxItems")
		if hasLow && float64(len(l)) < low || hasHigh && float64(len(l)) > high {
			return fmt.Sprintf("%s has %d items", where, len(l))
		}
		for i := range l {
			if why := holds(at(schema["items"]), l[i], fmt.Sprintf("%s[%d]", where, i)); why != "" {
				return why
			}
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range list(schema["required"]) {
		if _, ok := m[name]; !ok {
			return where + " has no " + name
		}
	}
	for name, value := range m {
		inner := at(at(schema["properties"])[name])
		if inner == nil {
			switch more := schema["additionalProperties"].(type) {
			case string:
				return where + " has " + name + ", which is not described"
			case map[string]any:
				inner = at(more)
			default:
				continue
			}
		}
		if why := holds(inner, value, where+"."+name); why != "" {
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

// breaks says where an answer is not as the file describes it; "" if it is.
func breaks(method, target string, w *httptest.ResponseRecorder) string {
	path, _, _ := strings.Cut(target, "?")
	if path == forwardAuth || strings.HasPrefix(path, forwardAuth+"/") {
		path, method = forwardAuth, "get"
	}
	if method == http.MethodHead {
		method = "get"
	}
	responses := at(document(), "paths", path, strings.ToLower(method), "responses")
	if responses == nil {
		if w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed || w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden {
			return "" // nothing is described there
		}
		return fmt.Sprintf("%s %s is not described, and answered %d", method, target, w.Code)
	}
	response := at(responses[strconv.Itoa(w.Code)])
	if response == nil {
		if response = at(responses["default"]); w.Code < 400 || w.Code > 599 {
			return fmt.Sprintf("%s %s: the status %d is not described", method, target, w.Code)
		}
	}
	for name, h := range at(response["headers"]) {
		values := w.Header().Values(name)
		if len(values) == 0 {
			if at(h)["required"] == "true" {
				return target + ": there is no header " + name
			}
			continue
		}
		if why := holds(at(at(h)["schema"]), values[0], name); why != "" {
			return why
		}
	}
	content := at(response["content"])
	body := w.Body.Bytes()
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	if _, ok := content[kind]; !ok && content["*/*"] != nil && kind != "application/json" { // as rules say
		kind = "*/*"
	}
	switch {
	case len(content) == 0 && len(body) == 0:
		return ""
	case content[kind] == nil:
		return fmt.Sprintf("%s %s: the type %q of status %d is not described", method, target, kind, w.Code)
	case at(content[kind])["schema"] == nil:
		return ""
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return fmt.Sprintf("%s %s: %q is not JSON: %v", method, target, body, err)
	}
	return holds(at(at(content[kind])["schema"]), v, target)
}

// The test of the tests: what is not described is found.
func TestDescriptionCanBeBroken(t *testing.T) {
	f := func(target string, status int, kind, body string, fine bool) {
		t.Helper()
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Tidegate-Decision", "allowed")
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		if why := breaks("POST", target, w); (why == "") != fine {
			t.Errorf("%s %d %s %s: %q", target, status, kind, body, why)
		}
	}
	f("/v1/check", 200, "application/json", `{"decision":"allowed","limit":5,"remaining":1,"reset_after":0.5}`, true)
	f("/v1/check", 200, "application/json", `{"answers":[{"decision":"denied"}]}`, true)
	f("/v1/check", 200, "application/json", `{"answers":[]}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"perhaps"}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","limit":-5}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","remaining":1.5}`, false)
	f("/v1/check", 200, "application/json", `{"decision":"allowed","surprise":1}`, false)
	f("/v1/check", 200, "application/json", `{}`, false)
	f("/v1/check", 200, "text/plain", `{"decision":"allowed"}`, false)
	f("/v1/check", 201, "application/json", `{"decision":"allowed"}`, false)
	f("/v1/settle", 200, "application/json", `{"done":false}`, false)
	f("/v1/settle", 409, "application/problem+json", `{"type":"about:blank","title":"Conflict","status":409,"detail":"x"}`, true)
	f("/v1/settle", 409, "application/problem+json", `{"type":"about:blank","title":"Conflict","status":9}`, false)
	f("/v1/nothing", 200, "application/json", `{}`, false)
	f("/v1/forward-auth", 204, "", "", true)
	f("/v1/forward-auth", 200, "", "", false)
}

// Every path that is described is served, and the file itself.
func TestDescriptionIsComplete(t *testing.T) {
	described := at(document(), "paths")
	for name := range verbs {
		if described["/v1/"+name] == nil {
			t.Errorf("/v1/%s is not described", name)
		}
	}
	for path := range described {
		name := strings.TrimPrefix(path, "/v1/")
		if verbs[name] == nil && path != forwardAuth && name != "openapi.yaml" {
			t.Errorf("%s is described, and not served", path)
		}
	}
	if got := ask(t, newServer(t, "", nil), "GET", "/v1/openapi.yaml", ""); got.Code != 200 || got.Body.String() != string(description) {
		t.Errorf("%d", got.Code)
	}
}
