package cli

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/rules/source"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// ruledFleet has an instance in every state.
func ruledFleet() []admin.InForce {
	const redis, hash, old = "redis://r:6379#rules", "3f2a9c01b7d4e655aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "00002a9c01b7d4e6aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	bad := &admin.RefusedRules{Revision: "43", Since: noon.Add(time.Minute), Message: "rules.yaml:3:5: there is no unit `hors`\n  3 | limits: 5/hors\n    |         ^"}
	base := admin.Layer{Name: "base.yaml", Revision: hash, Since: noon}
	return []admin.InForce{
		{ID: "A", Name: "web-1", Self: true, Hash: hash, Since: noon, Layers: []admin.Layer{base, {Name: redis, Revision: "42", Author: "ann", Reason: "flash sale, until Friday", Since: noon, Reached: noon.Add(89 * time.Second), Refused: bad}}},
		{ID: "B", Name: "web-2", Hash: hash, Since: noon, Layers: []admin.Layer{base, {Name: redis, Revision: "42", Since: noon.Add(-time.Hour), Reached: noon.Add(90 * time.Second), Refused: bad}}},
		{ID: "C", Name: "web-3", Hash: old, Since: noon.Add(-72 * time.Hour), Layers: []admin.Layer{base, {Name: redis, Revision: "41", Since: noon.Add(-72 * time.Hour), Reached: noon, Error: "dial tcp 10.0.0.9:6379: connection refused\x1b[2J"}}},
		{ID: "D", Name: "web-4", Hash: "3f2a9c01b7d4e655", Unanswered: "it did not answer in time"},
	}
}

func TestRulesStatusTable(t *testing.T) {
	var out bytes.Buffer
	is := admin.CombineReports(ruledFleet(), noon.Add(90*time.Second))
	printRulesStatus(&Env{Stdout: &out}, &is, noon.Add(90*time.Second))
	want := `INSTANCE       RULES             STATE    SOURCE                REVISION          SINCE                 ANSWERED
web-1 (asked)  3f2a9c01b7d4e655  behind   base.yaml             3f2a9c01b7d4e655  1m30s ago             -
                                          redis://r:6379#rules  42                1m30s ago             1s ago
web-2          3f2a9c01b7d4e655  behind   base.yaml             3f2a9c01b7d4e655  1m30s ago             -
                                          redis://r:6379#rules  42                1h1m ago              now
web-3          00002a9c01b7d4e6  behind   base.yaml             3f2a9c01b7d4e655  1m30s ago             -
                                          redis://r:6379#rules  41                2026-11-13 12:00 UTC  1m30s ago
web-4          3f2a9c01b7d4e655  unknown  -                     -                 -                     -
warning: web-1 is behind: it refuses revision 43 of redis://r:6379#rules and goes on with revision 42
warning: web-2 is behind: it refuses revision 43 of redis://r:6379#rules and goes on with revision 42
warning: web-3 is behind: it runs revision 41 of redis://r:6379#rules, and revision 42 is in force elsewhere since 11:00:00 UTC; redis://r:6379#rules has not answered it for 1m30s: dial tcp 10.0.0.9:6379: connection refused?[2J
warning: it is not known what web-4 runs: it did not answer in time
refused: revision 43 of redis://r:6379#rules on web-1, web-2, since 30s ago:
  rules.yaml:3:5: there is no unit ` + "`hors`" + `
    3 | limits: 5/hors
      |         ^
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// rulesServer is an admin listener with this status and history.
func rulesServer(t *testing.T, all []admin.InForce, h admin.History) string {
	t.Helper()
	server := httptest.NewServer(admin.New(admin.Options{
		InForce: func() admin.InForce { return all[0] }, Followers: func() []admin.InForce { return all[1:] }, History: h,
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func runRules(t *testing.T, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e := Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }}
	code = run(t.Context(), e, append([]string{"rules"}, args...))
	return code, stdout.String(), stderr.String()
}

// --check is for scripts: 1 unless all run the newest.
func TestRulesStatusCheck(t *testing.T) {
	all := ruledFleet()
	fine := []admin.InForce{{ID: "A", Hash: "aa", Layers: []admin.Layer{{Name: "rules.yaml", Revision: "aa"}}}}
	f := func(all []admin.InForce, want int, args ...string) {
		t.Helper()
		code, out, problems := runRules(t, append([]string{"status", "--server", rulesServer(t, all, nil)}, args...)...)
		if code != want || out == "" || problems != "" {
			t.Errorf("%q: %d %s %s", args, code, out, problems)
		}
	}
	f(fine, exitOK)
	f(fine, exitOK, "--check")
	f(fine, exitOK, "--check", "--json")
	f(all, exitOK)
	f(all, exitFound, "--check")
	f(all, exitFound, "--check", "--json")
	for _, args := range [][]string{nil, {"stats"}, {"status", "extra"}, {"history", "extra"}, {"pull"}, {"pull", "a", "b"}} {
		if code, _, problems := runRules(t, args...); code != exitUsage || problems == "" {
			t.Errorf("%q: %d %s", args, code, problems)
		}
	}
	if code, _, problems := runRules(t, "status", "--server", "127.0.0.1:1"); code != exitFound || !strings.Contains(problems, "cannot ask") {
		t.Errorf("%d %s", code, problems)
	}
}

// bygone is a history.
type bygone []*source.Bundle

func (b bygone) History(context.Context) (all []source.Edition, err error) {
	for _, one := range b {
		all = append(all, one.Edition)
	}
	return all, nil
}

func (b bygone) Get(_ context.Context, hash string) (*source.Bundle, error) {
	for _, one := range b {
		if strings.HasPrefix(one.Hash, hash) {
			return one, nil
		}
	}
	return nil, source.ErrNoRevision
}

// What was in force is listed, and comes back as it was. Names that lead out of the folder do
// not.
func TestRulesHistoryAndPull(t *testing.T) {
	h := bygone{
		{Edition: source.Edition{Hash: "bbbbbbbbbbbbbbbbbbbb", Revision: "43", Author: "ann", Reason: "less, for bots", At: noon}, Files: map[string][]byte{"../out": []byte("x")}},
		{Edition: source.Edition{Hash: "aaaaaaaaaaaaaaaaaaaa", At: noon.Add(-time.Hour)}, Files: map[string][]byte{"rules.yaml": []byte("version: 1\n"), "lists/a": {0xff}}},
	}
	url := rulesServer(t, ruledFleet(), h)
	code, out, problems := runRules(t, "history", "--server", url)
	want := `RULES             REVISION  IN FORCE SINCE           AUTHOR  REASON
bbbbbbbbbbbbbbbb  43        2026-11-16 12:00:00 UTC  ann     less, for bots
aaaaaaaaaaaaaaaa  -         2026-11-16 11:00:00 UTC  -       -
`
	if code != exitOK || out != want || problems != "" {
		t.Errorf("%d %s\n%s", code, problems, out)
	}
	folder := filepath.Join(t.TempDir(), "a", "before")
	if code, out, problems = runRules(t, "pull", folder, "--revision", "aaaaaaaa", "--server", url); code != exitOK || !strings.Contains(out, "2 files of aaaaaaaaaaaaaaaa in "+folder) {
		t.Errorf("%d %s %s", code, out, problems)
	}
	for name, want := range map[string]string{"rules.yaml": "version: 1\n", "lists/a": "\xff"} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	f := func(part string, args ...string) {
		t.Helper()
		if code, _, problems := runRules(t, append(args, "--server", url)...); code != exitFound || !strings.Contains(problems, part) {
			t.Errorf("%q: %d %s", args, code, problems)
		}
	}
	f("is not empty", "pull", folder, "--revision", "aaaaaaaa")
	f("no set with the hash", "pull", folder+"2", "--revision", "cccccccc")
	f("not in the history", "pull", folder+"2")
	f("escapes", "pull", folder+"2", "--revision", "bbbbbbbb")
	if _, err := os.Stat(filepath.Join(folder, "..", "out")); err == nil {
		t.Error("a file is outside of the folder")
	}
}
