package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules/envoy"
)

// putFiles writes the files of a folder and returns it.
func putFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	nativeFile = "version: 1\nrules: [{ name: site, per: ip, limits: 5/minute }]\n"
	domainFile = "domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: minute, requests_per_unit: 7 } }]\n"
)

func TestFolderOfBothLanguages(t *testing.T) {
	user := []envoy.Entry{{Key: "user", Value: "ann"}}
	f := func(files map[string]string, rules, requests int) {
		t.Helper()
		set, err := Load(putFiles(t, files), Config{})
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Rules()) != rules || len(set.Files()) != len(files) {
			t.Errorf("%d rules of %q", len(set.Rules()), set.Files())
		}
		r := set.Domains().Domain("shop").Find(user)
		if (r != nil) != (requests > 0) || r != nil && int(r.RequestsPerUnit) != requests {
			t.Errorf("user=ann has %+v, want %d", r, requests)
		}
		request := tidegate.Request{Method: "GET", Path: "/"}
		if n := len(set.Match(&request, nil)); n != rules {
			t.Errorf("a request is held to %d checks, want %d", n, rules)
		}
		set.Explain(&request)
	}
	f(map[string]string{"a.yaml": nativeFile}, 1, 0)
	f(map[string]string{"a.yaml": domainFile}, 0, 7)
	f(map[string]string{"a.yaml": domainFile, "b.yaml": nativeFile}, 1, 7)
	f(map[string]string{"a.yaml": domainFile, "b.yaml": "version: 1\nidentify: { user: jwt.sub }\n"}, 0, 7)
}

// A file with a domain can be included, and loaded by itself.
func TestDomainFileByItself(t *testing.T) {
	dir := putFiles(t, map[string]string{"main.yaml": "version: 1\ninclude: envoy.conf\n", "envoy.conf": domainFile})
	for _, name := range []string{"main.yaml", "envoy.conf"} {
		set, err := Load(filepath.Join(dir, name), Config{})
		if err != nil || set.Domains().Domain("shop") == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	set, err := Parse("envoy.yaml", []byte(domainFile), Config{})
	if err != nil || set.Domains().Domain("shop") == nil {
		t.Error(err)
	}
}

// One bad file refuses the whole folder, whichever language it is in, and the mistakes of both
// are reported at once.
func TestOneBadFileOfBothLanguages(t *testing.T) {
	f := func(files map[string]string, want ...string) {
		t.Helper()
		_, err := Load(putFiles(t, files), Config{})
		var load *LoadError
		if !errors.As(err, &load) {
			t.Errorf("got %v, want a LoadError", err)
			return
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in\n%v", part, err)
			}
		}
	}
	bad := map[string]string{
		"unit":          strings.Replace(domainFile, "minute", "foo", 1),
		"not yaml":      domainFile + "'''\n",
		"no domain":     "descriptors: [{ key: user }]\n",
		"both":          nativeFile + domainFile,
		"wrong numbers": strings.Replace(domainFile, "}]", ", tidegate: { algorithm: nothing } }]", 1),
	}
	for _, text := range bad {
		f(map[string]string{"a.yaml": nativeFile, "b.yaml": text}, "b.yaml:", "^")
		f(map[string]string{"a.yaml": strings.Replace(nativeFile, "limits", "limit", 1), "b.yaml": text}, "a.yaml:", "b.yaml:")
	}
	f(map[string]string{"a.yaml": domainFile, "b.yaml": strings.Replace(nativeFile, "limits", "limit", 1)}, "b.yaml:")
	f(map[string]string{"a.yaml": domainFile, "b.yaml": domainFile}, "the domain `shop` is already at")
	dir := putFiles(t, map[string]string{"a.yaml": domainFile, "b.yaml": strings.Replace(domainFile, "user", "other", 1)})
	if _, err := Load(dir, Config{MergeDomains: true}); err != nil {
		t.Error(err)
	}
}
