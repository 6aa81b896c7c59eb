//go:build unix

package serve

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// The printed lines, run by a shell as they are, do what they promise.
func testInvitation(t *testing.T, bin string) {
	testdep.Need(t, "curl")
	example, err := filepath.Abs("../../deploy/example")
	if err != nil {
		t.Fatal(err)
	}
	w := newSandbox(t, bin)
	s := w.serve("", nil, "--demo", "-c", filepath.Join(example, "tidegate.yaml"), "--log.format=json",
		"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	gateway, admin := s.ready()
	w.until("there is something to try", func() bool { return strings.Contains(s.logText(), "Ctrl-C") })
	first := "The dashboard: " + admin + "/\n"
	if before, _, found := strings.Cut(s.logText(), first); !found || strings.Contains(before, "curl") {
		t.Errorf("it does not begin with %s", first)
	}
	place := demo.Place{Gateway: gateway, Admin: admin, Program: bin, Rules: filepath.Join(example, "rules.yaml")}
	for _, try := range demo.Tries(place) {
		if printed := "\n# " + try.About + "\n" + try.Line + "\n#   -> " + try.Want + "\n"; !strings.Contains(s.logText(), printed) {
			t.Errorf("it does not print\n%s", printed)
		}
		sh := exec.Command("sh", "-c", try.Line)
		printed, err := sh.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", try.Line, err, printed)
		}
		checkTry(t, try, strings.TrimSpace(string(printed)))
	}
}

// Also with other rules, for which there is nothing to try, the address of the dashboard is printed.
func testGreeting(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", "version: 1\nrules: [{ name: few, per: ip, limits: 3/hour }]\n")
	s := w.serve("", nil, append(anyPorts, "--demo", "--rules=rules.yaml")...)
	_, admin := s.ready()
	w.until("the address is printed", func() bool { return strings.Contains(s.logText(), "The dashboard: "+admin+"/\n") })
	if strings.Contains(s.logText(), "curl") {
		t.Error("there are commands for other rules")
	}
}

// checkTry compares what a line printed with what was promised, word for word or,
// where the promise is in words of its own, by what stands for it.
func checkTry(t *testing.T, try demo.Try, printed string) {
	t.Helper()
	signs := map[string][]string{
		"429 with Retry-After, RateLimit, X-RateLimit-* and a problem+json body": {
			`^HTTP/1.1 429 `, `\nRetry-After: \d`, `(?i)\nRateLimit: "api";r=0;t=`, `application/problem\+json`,
			`\nX-Ratelimit-Limit: 5\r`, `\nX-Ratelimit-Remaining: 0\r`, `\nX-Ratelimit-Retry-After: \d`,
		},
		"201 after 0, 1 and 2 s":      {`(?m)^201 after 0\.`, `(?m)^201 after (1\.|0\.9)`, `(?m)^201 after (2\.|1\.9)`},
		`"limit unlimited" under api`: {`(?m)^api applies`, `(?m)^ +limit +unlimited`},
		"a line for each rule":        {`(?m)^api +ip 127.0.0.1`, `(?m)^login +ip 127.0.0.1 .*blocked`, `(?m)^orders +ip 127.0.0.1`},
	}[try.Want]
	if signs == nil && printed != try.Want {
		t.Errorf("%s\nsaid %q, want %q", try.Line, printed, try.Want)
	}
	for _, sign := range signs {
		if !regexp.MustCompile(sign).MatchString(printed) {
			t.Errorf("%s\ndoes not say %s:\n%s", try.Line, sign, printed)
		}
	}
}

// What the demo has built in is what deploy/example shows.
func TestExampleRulesAreTheDemos(t *testing.T) {
	const shown = "../../deploy/example/rules.yaml"
	text, err := os.ReadFile(shown)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(text, demo.Rules) {
		t.Errorf("%s is not internal/dev/demo/rules.yaml: copy one over the other", shown)
	}
}
