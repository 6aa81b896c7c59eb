//go:build unix

package serve

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// validated is what /rules/validate answers.
type validated struct {
	Valid    bool      `json:"valid"`
	Problems diag.List `json:"problems"`
	Rules    []string  `json:"rules"`
}

// A draft of a file of one layer is judged together with the other layers. Mistakes are told with
// the layer and file that have them, though both have files of the same names.
func testValidateLayers(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	for name, text := range map[string]string{
		"base/rules.yaml": "version: 1\ninclude: ids.yaml\nrules: [{ name: api, per: tenant, limits: 5/hour }]\n",
		"base/ids.yaml":   "version: 1\nidentify: { tenant: client header X-Tenant }\n",
		"over/rules.yaml": "version: 1\ninclude: more.yaml\nrules: [{ name: api, per: tenant, limits: 7/hour, replace: true }]\n",
		"over/more.yaml":  "version: 1\nrules: [{ name: more, per: tenant, limits: 7/hour }]\n",
	} {
		if err := os.MkdirAll(filepath.Join(w.dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(name, text)
	}
	s := w.serve("", nil, "--rules=base/rules.yaml", "--rules=over/rules.yaml", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	_, at := s.ready()
	ask := func(name, text string) (v validated) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"name": name, "source": "version: 1\n" + text})
		if err != nil {
			t.Fatal(err)
		}
		res, err := once.Post(at+"/rules/validate", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", res.Status, err)
		}
		return v
	}
	f := func(name, text, file, message string) {
		t.Helper()
		v := ask(name, text)
		found := slices.ContainsFunc(v.Problems, func(p diag.Problem) bool {
			return p.Severity == diag.Error && strings.HasSuffix(p.File, file) && strings.Contains(p.Message, message)
		})
		if v.Valid || !found {
			t.Errorf("%s %s: want %q of %s, got %+v", name, text, message, file, v)
		}
	}
	if v := ask("rules.yaml", "include: more.yaml\nrules: [{ name: api, per: tenant, limits: 9/hour, replace: true }]\n"); !v.Valid || len(v.Rules) != 2 {
		t.Errorf("a good draft: %+v", v)
	}
	f("rules.yaml", "rules: [{ name: api, per: tenant, limits: 9/hor, replace: true }]\n", "over/rules.yaml: rules.yaml", "hor")
	f("rules.yaml", "rules: [{ name: api, per: tenant, limits: 9/hour }]\n", "over/rules.yaml: rules.yaml", "base/rules.yaml: rules.yaml:3, in an earlier layer")
	f("more.yaml", "rules: [{ name: more, per: team, limits: 9/hour }]\n", "over/rules.yaml: more.yaml", "team")
	f("ids.yaml", "identify: { tenant: headr X-Tenant }\n", "base/rules.yaml: ids.yaml", "headr")
	// A layer cannot include a file of another.
	f("rules.yaml", "include: ids.yaml\nrules: [{ name: api, per: tenant, limits: 9/hour, replace: true }]\n", "over/rules.yaml: rules.yaml", "ids.yaml")
	if v := ask("alone.yaml", "rules: [{ name: api, per: ip, limits: 9/hour }]\n"); !v.Valid || len(v.Rules) != 1 {
		t.Errorf("a draft that no layer has: %+v", v)
	}
}
