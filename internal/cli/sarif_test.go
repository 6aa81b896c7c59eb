package cli

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tidegate.dev/tidegate/rules/lint"
)

// repository is the root of the tree, whatever folder a test goes to.
var repository, _ = filepath.Abs("../..")

// lintSARIF runs lint and holds what it prints to SARIF 2.1.0 and to what code scanning
// asks for beyond it.
func lintSARIF(t *testing.T, stdin string, args ...string) sarifRun {
	t.Helper()
	var out, problems bytes.Buffer
	env := Env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &problems, Getenv: os.Getenv}
	run(t.Context(), env, append([]string{"lint", "--format", "sarif"}, args...))
	if problems.Len() > 0 {
		t.Fatal(problems.String())
	}
	var log sarifLog
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&log); err != nil || log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("%v: %+v", err, log)
	}
	r := log.Runs[0]
	ids := make(map[string]bool)
	for _, rule := range r.Tool.Driver.Rules {
		at, err := url.Parse(rule.HelpURI)
		if ids[rule.ID] || rule.ShortDescription.Text == "" || err != nil || !at.IsAbs() {
			t.Errorf("rule %+v: %v", rule, err)
		}
		if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(at.Path))); err != nil {
			t.Errorf("the page of %s: %v", rule.ID, err)
		}
		ids[rule.ID] = true
	}
	prints := make(map[string]bool)
	for _, result := range r.Results {
		rule := r.Tool.Driver.Rules[result.RuleIndex]
		if rule.ID != result.RuleID || result.Level != "error" && result.Level != "warning" || result.Message.Text == "" || result.Suppressions == nil {
			t.Errorf("%+v", result)
		}
		if rule.ID != unread && (rule.Help == nil || !strings.HasPrefix(rule.Help.Markdown, "# "+rule.ID+"\n")) {
			t.Errorf("%s has no page", rule.ID)
		}
		for _, s := range result.Suppressions {
			if s.Kind != "inSource" || s.Status != "accepted" || s.Justification == "" {
				t.Errorf("%+v", s)
			}
		}
		if len(result.Locations) != 1 {
			t.Fatalf("%+v", result)
		}
		place := result.Locations[0].Physical
		if at, err := url.Parse(place.Artifact.URI); err != nil || place.Artifact.URI == "" || strings.ContainsAny(place.Artifact.URI, " <>\\") || at.Fragment != "" {
			t.Errorf("%q is not a URI: %v", place.Artifact.URI, err)
		}
		if region := place.Region; region != nil && (region.StartLine < 1 || region.StartColumn < 1 || region.EndColumn <= region.StartColumn) {
			t.Errorf("%+v", *region)
		}
		prints[result.Fingerprints["tidegate/v1"]] = true
	}
	if len(prints) != len(r.Results) {
		t.Errorf("%d fingerprints of %d results", len(prints), len(r.Results))
	}
	return r
}

// Everything that any check finds, and whatever keeps a file from loading, is told with
// its page and its place.
func TestSARIFOfEveryCheck(t *testing.T) {
	t.Chdir("../../rules/lint")
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < len(lint.Checks) {
		t.Fatalf("%d files: %v", len(files), err)
	}
	bad, err := filepath.Glob("../../internal/lang/rulefile/testdata/bad/*.yaml")
	if err != nil || len(bad) < 44 {
		t.Fatalf("%d files: %v", len(bad), err)
	}
	trustless := filepath.Join(t.TempDir(), "tidegate.yaml")
	if err := os.WriteFile(trustless, []byte("# nothing is trusted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, name := range slices.Concat(files, bad) {
		for _, result := range lintSARIF(t, "", "--door", "check", "--door", "rlqs", "--config", trustless, name).Results {
			found[result.RuleID] = true
		}
	}
	for _, c := range lint.Checks {
		if !found[c.Name] {
			t.Errorf("nothing of %s", c.Name)
		}
	}
	if !found[unread] {
		t.Error("no file that does not load")
	}
}

const noted = `version: 1
waive: { boundary-burst: "smoothed <by> \"us\"" }
rules:
  - { name: a, match: /å/, per: ip, limits: { rate: 5/minute, algorithm: fixed_window } }
  - { name: b, match: /b/, per: ip, limits: { rate: 5000/minute, algorithm: sliding_log } }
`

func TestSARIF(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"my rules.yaml", "sub/a#b%20.yaml", "x:y.yaml"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(noted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	absolute, err := filepath.Abs("my rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// f compares where the file is said to be with want.
	f := func(stdin, name, want string) {
		t.Helper()
		results := lintSARIF(t, stdin, name).Results
		if len(results) != 2 {
			t.Fatalf("%+v", results)
		}
		waived, told := results[0], results[1]
		if got := told.Locations[0].Physical.Artifact.URI; got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
		if waived.RuleID != "boundary-burst" || len(waived.Suppressions) != 1 || waived.Suppressions[0].Justification != `smoothed <by> "us"` {
			t.Errorf("%+v", waived)
		}
		region := told.Locations[0].Physical.Region
		line := []rune(strings.Split(noted, "\n")[region.StartLine-1])
		if under := string(line[region.StartColumn-1 : region.EndColumn-1]); told.RuleID != "heavy-log" || len(told.Suppressions) != 0 || under != "5000/minute" || !utf8.ValidString(region.Snippet.Text) {
			t.Errorf("%+v: %q", told, under)
		}
	}
	f("", "my rules.yaml", "my%20rules.yaml")
	f("", "sub/a#b%20.yaml", "sub/a%23b%2520.yaml")
	f("", "x:y.yaml", "./x:y.yaml")
	f("", absolute, "file://"+strings.ReplaceAll(absolute, " ", "%20"))
	f(noted, "-", "%3Cstdin%3E")

	if results := lintSARIF(t, "", "none.yaml").Results; len(results) != 1 || results[0].Locations[0].Physical.Region != nil {
		t.Errorf("a file that is not there: %+v", results)
	}
	if results := lintSARIF(t, "version: 1\nrules: [{ name: a, per: ip, limits: 5/minute }]\n", "-").Results; results == nil || len(results) != 0 {
		t.Errorf("nothing found: %+v", results)
	}
}

// Lines that are added above change no fingerprint.
func TestSARIFFingerprintsStay(t *testing.T) {
	before := lintSARIF(t, noted, "-").Results
	after := lintSARIF(t, "# a comment\n\n"+noted, "-").Results
	for i := range before {
		if before[i].Fingerprints["tidegate/v1"] != after[i].Fingerprints["tidegate/v1"] {
			t.Errorf("%+v and %+v", before[i], after[i])
		}
	}
}
