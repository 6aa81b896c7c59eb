//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/redis"
)

// editing is an operator who changes rules by the page.
type editing struct {
	*sandbox
	at string // the admin listener
}

func (w *sandbox) editing(s *serving) editing {
	w.Helper()
	_, at := s.ready()
	return editing{w, at}
}

// files are the rules in force as the page shows them.
func (e editing) files() (is admin.RuleFiles) {
	e.Helper()
	_, body := e.get(once, e.at+"/rules/files")
	if err := json.Unmarshal([]byte(body), &is); err != nil || len(is.Layers) == 0 {
		e.Fatalf("%v: %s", err, body)
	}
	return is
}

// apply sends new rules, and returns what is said.
func (e editing) apply(q admin.NewRules) (status int, said string) {
	e.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		e.Fatal(err)
	}
	res, err := once.Post(e.at+"/rules/apply", "application/json", strings.NewReader(string(body)))
	if err != nil {
		e.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		e.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// refused wants that rules are refused with a message, and that nothing has changed in force.
func (e editing) refused(status int, part string, q admin.NewRules) {
	e.Helper()
	was := e.files().Hash
	if got, said := e.apply(q); got != status || !strings.Contains(said, part) {
		e.Errorf("%d %s, want %d with %q", got, said, status, part)
	}
	if is := e.files().Hash; is != was {
		e.Errorf("the rules are %s, and were %s", is, was)
	}
}

// applied wants that rules come in force, and returns where they are.
func (e editing) applied(q admin.NewRules) string {
	e.Helper()
	var is admin.Applied
	got, said := e.apply(q)
	if err := json.Unmarshal([]byte(said), &is); err != nil || got != http.StatusOK {
		e.Fatalf("%d %s", got, said)
	}
	e.until("other rules are in force", func() bool { return e.files().Hash != q.Hash })
	return is.Where
}

// change is the rules in force with another text of a file.
func (e editing) change(layer, file, text string) admin.NewRules {
	e.Helper()
	return admin.NewRules{Hash: e.files().Hash, Layer: layer, Files: map[string]string{file: text}, Reason: "a test"}
}

// writeAll writes files, and the folders they are in.
func (w *sandbox) writeAll(files map[string]string) {
	w.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(w.dir, filepath.Dir(name)), 0o700); err != nil {
			w.Fatal(err)
		}
		w.write(name, text)
	}
}

// onDisk wants files to be as they are said to be.
func (w *sandbox) onDisk(files map[string]string) {
	w.Helper()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil || string(got) != want {
			w.Errorf("%s: %v:\n%s\nwant\n%s", name, err, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.dir, "*", ".*.new-*"))
	if err != nil || len(left) > 0 {
		w.Errorf("left behind: %v, %v", left, err)
	}
}

// Rules in files are changed by the page: one that includes others, and a folder. What is refused leaves
// every file alone.
func testApplyFiles(t *testing.T, bin string) {
	const ids = "version: 1\nidentify: { customer: query customer }\n"
	rules := func(limits string) string {
		return "version: 1\ninclude: parts/ids.yaml\nrules: [{ name: few, match: GET /api/things, per: customer, limits: " + limits + " }]\n"
	}
	t.Run("includes", func(t *testing.T) {
		w := newSandbox(t, bin)
		files := map[string]string{"conf/rules.yaml": rules("3/hour"), "conf/parts/ids.yaml": ids}
		w.writeAll(files)
		e := w.editing(w.serve("", nil, append(anyPorts, "--rules=conf/rules.yaml")...))
		e.refused(422, "do not load, and nothing was changed", e.change("", "rules.yaml", rules("3/hors")))
		e.refused(422, "customer", e.change("", "parts/ids.yaml", "version: 1\nidentify: { user: query customer }\n"))
		e.refused(400, `There is no file \"other.yaml\"`, e.change("", "other.yaml", "version: 1\n"))
		e.refused(400, "There is no file", e.change("", "../out.yaml", "version: 1\n"))
		e.refused(400, `There is no layer \"other\"`, e.change("other", "rules.yaml", rules("4/hour")))
		q := e.change("", "rules.yaml", rules("4/hour"))
		q.Reason = " "
		e.refused(400, "no reason", q)
		q.Reason, q.Hash = "a test", strings.Repeat("0", 64)
		e.refused(409, "Look at the rules again", q)
		e.refused(400, "either files or back_to", admin.NewRules{Hash: e.files().Hash, Reason: "a test"})
		e.refused(404, "There is no set", admin.NewRules{Hash: e.files().Hash, BackTo: "0123456789abcdef", Reason: "a test"})
		w.onDisk(files)

		first := e.files().Hash
		const others = "version: 1\nidentify: { customer: client header X-Customer }\n"
		e.applied(e.change("", "parts/ids.yaml", others))
		files["conf/parts/ids.yaml"] = others
		w.onDisk(files)
		e.applied(e.change("", "rules.yaml", rules("4/hour")))
		e.applied(admin.NewRules{Hash: e.files().Hash, BackTo: first, Reason: "as before"}) // two files at once
		files = map[string]string{"conf/rules.yaml": rules("3/hour"), "conf/parts/ids.yaml": ids}
		w.onDisk(files)
		w.until("the first rules are in force again", func() bool { return e.files().Hash == first })
		if info, err := os.Stat(filepath.Join(w.dir, "conf/rules.yaml")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v: who may read the file has changed: %v", err, info)
		}

		// The history says by whom and why, also of files; not of what somebody writes by hand.
		newest := func(reason string) bool {
			past := w.rulesHistory(e.at)
			return past[0].InForce && past[0].Reason == reason && (past[0].Author != "") == (reason != "")
		}
		w.until("the history says who went back, and why", func() bool { return newest("as before") })
		files["conf/rules.yaml"] = rules("6/hour")
		w.write("conf/rules.yaml", files["conf/rules.yaml"])
		w.until("the history does not say who wrote a file by hand", func() bool { return newest("") })

		// What somebody has written who is not done yet is left alone.
		q = e.change("", "rules.yaml", rules("4/hour"))
		files["conf/rules.yaml"] = "version: 1\nrules: [{ name: unfinished\n"
		w.write("conf/rules.yaml", files["conf/rules.yaml"])
		e.refused(409, "is not what is in force", q)
		w.onDisk(files)
	})
	t.Run("folder", func(t *testing.T) {
		w := newSandbox(t, bin)
		files := map[string]string{"conf/a.yaml": ids, "conf/b.yaml": strings.Replace(rules("3/hour"), "include: parts/ids.yaml\n", "", 1)}
		w.writeAll(files)
		e := w.editing(w.serve("", nil, append(anyPorts, "--rules=conf")...))
		if is := e.files(); len(is.Layers) != 1 || len(is.Layers[0].Files) != 2 || is.Layers[0].Fixed != "" {
			t.Fatalf("%+v", is)
		}
		e.refused(422, "nothing was changed", e.change("", "a.yaml", "version: 1\n"))
		w.onDisk(files)
		files["conf/b.yaml"] = strings.Replace(files["conf/b.yaml"], "3/hour", "5/hour", 1)
		e.applied(e.change("", "b.yaml", files["conf/b.yaml"]))
		w.onDisk(files)
	})
}

// Of several layers one is changed, and judged together with the others. What cannot be changed
// there says why.
func testApplyLayers(t *testing.T, bin string) {
	w := newSandbox(t, bin)
	files := map[string]string{
		"base/rules.yaml": "version: 1\nidentify: { customer: query customer }\nrules: [{ name: few, per: customer, limits: 5/hour }]\n",
		"over/rules.yaml": "version: 1\nrules: [{ name: few, per: customer, limits: 7/hour, replace: true }]\n",
	}
	w.writeAll(files)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "version: 1\nrules: [{ name: site, per: ip, limits: 9/hour }]\n")
	}))
	defer web.Close()
	e := w.editing(w.serve("", nil, append(anyPorts, "--rules=base/rules.yaml", "--rules=over/rules.yaml", "--rules="+web.URL+"/site.yaml")...))
	is := e.files()
	if len(is.Layers) != 3 || is.Layers[0].Fixed != "" || is.Layers[1].Fixed != "" || !strings.Contains(is.Layers[2].Fixed, "only read") {
		t.Fatalf("%+v", is.Layers)
	}
	base, over, site := is.Layers[0].Name, is.Layers[1].Name, is.Layers[2].Name
	// Without `replace` the rule would be there twice, which only both layers together tell.
	e.refused(422, "in an earlier layer", e.change(over, "rules.yaml", strings.Replace(files["over/rules.yaml"], ", replace: true", "", 1)))
	e.refused(422, "customer", e.change(base, "rules.yaml", "version: 1\nrules: [{ name: few, per: ip, limits: 5/hour }]\n"))
	e.refused(400, "There is no layer", e.change("", "rules.yaml", files["over/rules.yaml"]))
	e.refused(409, "change them where they are published", e.change(site, "site.yaml", "version: 1\nrules: []\n"))
	e.refused(409, "tidegate rules rollback", admin.NewRules{Hash: is.Hash, Layer: over, BackTo: is.Hash, Reason: "a test"})
	w.onDisk(files)
	files["over/rules.yaml"] = strings.Replace(files["over/rules.yaml"], "7/hour", "8/hour", 1)
	e.applied(e.change(over, "rules.yaml", files["over/rules.yaml"]))
	w.onDisk(files)
}

// Rules that can only be read, of a web server or built in, say so and stay.
func testApplyReadOnly(t *testing.T, bin string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, counting("3/hour")) }))
	defer web.Close()
	for name, c := range map[string]struct{ flag, file, want string }{
		"web server": {"--rules=" + web.URL + "/rules.yaml", "rules.yaml", "the source is only read; change them where they are published"},
		"example":    {"--demo", exampleName, "built in"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSandbox(t, bin)
			e := w.editing(w.serve("", nil, append(anyPorts, c.flag)...))
			is := e.files()
			if len(is.Layers) != 1 || !strings.Contains(is.Layers[0].Fixed, c.want) {
				t.Errorf("%+v", is.Layers)
			}
			e.refused(409, c.want, e.change("", c.file, counting("4/hour")))
		})
	}
}

// Rules of an archive are changed by the page: there is a revision more, by whom and why. Whoever
// was second, or sends what does not load, changes nothing.
func testApplyArchive(t *testing.T, bin string) {
	url := "redis://" + testdep.Redis(t).Addr
	archive, err := redis.Open(redis.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	publish := func(text, head string) string {
		t.Helper()
		b := &source.Bundle{Edition: source.Edition{Author: "ann", Reason: "by hand"}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(text), "parts/ids.yaml": []byte("version: 1\nidentify: { customer: query customer }\n")}}
		revision, err := archive.Publish(t.Context(), b, head)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	text := func(limits string) string {
		return "version: 1\ninclude: parts/ids.yaml\nrules: [{ name: few, match: GET /api/things, per: customer, limits: " + limits + " }]\n"
	}
	revisions := func() []source.Edition {
		t.Helper()
		all, err := archive.History(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	publish(text("3/hour"), "")
	w := newSandbox(t, bin)
	e := w.editing(w.serve("", nil, append(anyPorts, "--rules="+url+"#rules")...))
	first := e.files()
	if len(first.Layers) != 1 || first.Layers[0].Fixed != "" || !strings.Contains(first.Layers[0].Reaches, "all who follow") || len(first.Layers[0].Files) != 2 {
		t.Fatalf("%+v", first)
	}
	e.refused(422, "nothing was changed", e.change("", "rules.yaml", text("3/hors")))
	if all := revisions(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	where := e.applied(e.change("", "rules.yaml", text("4/hour")))
	all := revisions()
	if len(all) != 2 || all[0].Reason != "a test" || all[0].Author == "" || !strings.Contains(where, all[0].Revision) {
		t.Errorf("%s: %+v", where, all)
	}
	e.applied(admin.NewRules{Hash: e.files().Hash, BackTo: first.Hash, Reason: "as before"})
	w.until("the first rules are in force again", func() bool { return e.files().Hash == first.Hash })
	if is := e.files(); is.Layers[0].Files["rules.yaml"] != text("3/hour") {
		t.Errorf("%+v", is)
	}

	// Somebody publishes by hand, while the operator still looks at what was before.
	q := e.change("", "rules.yaml", text("9/hour"))
	head := publish(text("5/hour"), revisions()[0].Revision)
	if status, said := e.apply(q); status != http.StatusConflict || !strings.Contains(said, "Nothing was changed") {
		t.Errorf("%d %s", status, said)
	}
	if got := revisions()[0].Revision; got != head {
		t.Errorf("revision %s is the newest, want %s", got, head)
	}
	w.until("the rules of the other one are in force", func() bool { return e.files().Layers[0].Files["rules.yaml"] == text("5/hour") })
	// One that does not load is newer than what is in force: the message says what to do.
	publish(text("5/hors"), head)
	w.until("it is refused", func() bool { return !w.rulesStatus(e.at).Current })
	e.refused(409, "tidegate rules push", e.change("", "rules.yaml", text("6/hour")))
}

// Of several who apply at once what they have made from the same rules, one is done, and all others are
// told that they were second. Nobody's change is lost without a word.
func testApplyAtOnce(t *testing.T, bin string) {
	const people = 4
	f := func(t *testing.T, e editing) {
		for round := range 4 {
			hash := e.files().Hash
			var done sync.Map
			var all sync.WaitGroup
			for i := range people {
				text := counting(fmt.Sprintf("%d/hour", 10+people*round+i))
				all.Go(func() {
					status, said := e.apply(admin.NewRules{Hash: hash, Files: map[string]string{"rules.yaml": text}, Reason: "a test"})
					switch {
					case status == http.StatusOK:
						done.Store(text, true)
					case status != http.StatusConflict || !strings.Contains(said, "Nothing was changed") || !strings.Contains(said, "Look at the rules again"):
						t.Errorf("%d %s", status, said)
					}
				})
			}
			all.Wait()
			n := 0
			done.Range(func(text, _ any) bool {
				n++
				e.until("the winner's rules are in force", func() bool { return e.files().Layers[0].Files["rules.yaml"] == text })
				return true
			})
			if n != 1 {
				t.Fatalf("%d of %d were done", n, people)
			}
		}
	}
	t.Run("files", func(t *testing.T) {
		w := newSandbox(t, bin, "rules.yaml", counting("3/hour"))
		f(t, w.editing(w.serve("", nil, anyPorts...)))
	})
	t.Run("archive", func(t *testing.T) {
		url := "redis://" + testdep.Redis(t).Addr
		archive, err := redis.Open(redis.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		if _, err := archive.Publish(t.Context(), &source.Bundle{Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(counting("3/hour"))}}, ""); err != nil {
			t.Fatal(err)
		}
		w := newSandbox(t, bin)
		f(t, w.editing(w.serve("", nil, append(anyPorts, "--rules="+url+"#rules")...)))
	})
}
