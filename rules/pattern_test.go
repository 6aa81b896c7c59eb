package rules

import (
	"strings"
	"testing"
)

// A pattern is written as the decoded path reads. What the file takes, the tree
// takes: a rule file that is reloaded must not end the process.
func TestPatternsOfOddCharacters(t *testing.T) {
	f := func(pattern, path string) {
		t.Helper()
		set := parse(t, `rules: [{ name: odd, match: "`+pattern+`", per: everyone, limits: 1/second }]`, Config{})
		r := request("GET " + path)
		heldTo(t, set)(r, "odd: 1/1s sliding_log per everyone")
		if e := set.Explain(r); !e.Rules[0].Applies {
			t.Errorf("explain says that %s does not match %s: %s", pattern, path, e.Rules[0].Why)
		}
		heldTo(t, set)(request("GET /else"))
		if why := set.Explain(request("GET /else")).Rules[0].Why; !strings.Contains(why, strings.TrimPrefix(pattern, "GET ")) {
			t.Errorf("explain does not name the pattern %s: %s", pattern, why)
		}
	}
	f("/100%", "/100%")
	f("/100%/{name}/", "/100%/a b/c")
	f("/with space/", "/with space/x")
	f("GET /no-break\u00a0space", "/no-break\u00a0space")
	f("/a#b", "/a#b")
	f("/ü/{name}", "/ü/7")
	f("/a;b=1,2/+&=@:", "/a;b=1,2/+&=@:")
}

func TestPatternsThatAreTooMuch(t *testing.T) {
	for _, pattern := range []string{
		strings.Repeat("/a", 129), "GET a..b.example/", strings.Repeat("a.", 127) + "example/",
	} {
		_, err := Parse("rules.yaml", []byte("version: 1\nrules: [{ name: odd, match: \""+pattern+"\", per: everyone, limits: 1/second }]"), Config{})
		if err == nil || !strings.Contains(err.Error(), "rules.yaml:2:") {
			t.Errorf("%.40s: %v, want an error with its place", pattern, err)
		}
	}
}
