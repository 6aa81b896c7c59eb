package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

func TestUnusedWaiver(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "unused-waiver", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: 5/minute, waive: { boundary-burst: "known" } }
`, "warning boundary-burst")
	f(`
waive: { boundary-burst: known, heavy-log: known }
rules:
  - { name: a, per: ip, limits: { rate: 5/minute, algorithm: fixed_window } }
`, "warning heavy-log")
	// The rule's own is taken first, so that of the file silences nothing.
	f(`
waive: { boundary-burst: known }
rules:
  - { name: a, per: ip, limits: { rate: 5/minute, algorithm: fixed_window }, waive: { boundary-burst: known } }
`, "warning boundary-burst")
	f(`
waive: { boundary-burst: known }
rules:
  - { name: a, per: ip, limits: { rate: 5/minute, algorithm: fixed_window }, waive: { boundary-burst: known } }
  - { name: b, match: /b/, per: ip, limits: { rate: 9/minute, algorithm: fixed_window } }
`)
	// What is found beside a rule is not in it.
	f(`
identify: { net: ip /8 /16 }
rules:
  - { name: a, per: net, limits: 5/minute, waive: { ip-prefix: known } }
`, "warning ip-prefix")
	// A door that was not asked about finds nothing, nor does an unknown configuration.
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, per: user, limits: 5/minute, waive: { blind-door: known, untrusted-source: known } }
`)
	// Its own waiver holds for others, and is not left over.
	f(`
rules:
  - { name: a, per: ip, limits: 5/minute, waive: { boundary-burst: known, unused-waiver: "shared with another site" } }
`, "warning boundary-burst")
	f(`
rules:
  - { name: a, per: ip, limits: 5/minute, waive: { unused-waiver: known } }
`, "warning unused-waiver")
}

// A check that needs to be told more finds a waiver idle only when it was.
func TestUnusedWaiverOfWhatWasAskedFor(t *testing.T) {
	const src = "version: 1\nrules: [{ name: a, per: ip, limits: 5/minute, waive: { blind-door: known, untrusted-source: known } }]\n"
	f := func(want int, o lint.Options) {
		t.Helper()
		o.Now = now
		if got := lint.Text("rules.yaml", []byte(src), o); len(got) != want {
			t.Errorf("%+v: %v", o, got)
		}
	}
	f(0, lint.Options{})
	f(0, lint.Options{Doors: rules.Doors()[:1]})
	f(1, lint.Options{Doors: rules.Doors()})
	f(1, lint.Options{Trust: new(lint.Trust)})
	f(2, lint.Options{Doors: rules.Doors(), Trust: new(lint.Trust)})
}

// In a folder, a waiver of a file is about that file.
func TestWaiverOfAFileIsAboutThatFile(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"a.yaml": "version: 1\nwaive: { boundary-burst: known }\nrules: [{ name: a, match: /a/, per: ip, limits: { rate: 5/minute, algorithm: fixed_window } }]\n",
		"b.yaml": "version: 1\nrules: [{ name: b, match: /b/, per: ip, limits: { rate: 5/minute, algorithm: fixed_window } }]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := lint.File(dir, lint.Options{Now: now})
	if len(found) != 2 || found[0].Waived != "known" || found[1].Waived != "" || filepath.Base(found[1].File) != "b.yaml" {
		t.Errorf("got %+v", found)
	}
	if errors, warnings := found.Count(); errors != 0 || warnings != 1 || found.CountWaived() != 1 {
		t.Errorf("%d errors, %d warnings, %d waived", errors, warnings, found.CountWaived())
	}
}
