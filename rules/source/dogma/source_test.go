package dogma

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules"
)

// The requests are those of the protocol, to the letter, and so is what is made of the answers.
func TestProtocol(t *testing.T) {
	s := newStand(t)
	revision := s.Commit("first", map[string]string{"/a/rules.yaml": "version: 1\n"})
	is := s.source("/a/rules.yaml")
	b := next(t, is, "")
	if b.Revision != fmt.Sprint(revision) || b.Main != "rules.yaml" || text(b) != "rules.yaml=version: 1" {
		t.Errorf("%+v", b)
	}
	if b.Author != "ann" || b.Reason != "first" || time.Since(b.At) > time.Hour {
		t.Errorf("%+v", b.Edition)
	}
	s.setHook(nil)
	shortly(func() { s.Commit("second", map[string]string{"/a/rules.yaml": "version: 1\n# two\n"}) })
	b = next(t, is, b.Revision)
	if b.Revision != "3" || text(b) != "rules.yaml=version: 1\n# two" || b.Reason != "second" {
		t.Errorf("%+v", b)
	}
	r := s.requests()[0]
	if r.Method != "GET" || r.URL.Path != "/api/v1/projects/shop/repos/limits/contents/a/rules.yaml" ||
		r.Header.Get("If-None-Match") != "2" || r.Header.Get("Prefer") != "wait=60, notify-entry-not-found=true" || r.URL.RawQuery != "" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	// Nothing for as long as the wait: 304, and the server is still there.
	is.o.Wait = time.Second
	if b, err := is.Next(t.Context(), b.Revision); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
	// Commits elsewhere in the repository are none here.
	s.Commit("elsewhere", map[string]string{"/b/rules.yaml": "x"})
	if b, err := is.Next(t.Context(), b.Revision); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
	// Another node that starts now, or this one again, has the same files.
	again := next(t, s.source("/a/rules.yaml"), "")
	if text(again) != text(b) {
		t.Errorf("%q, want %q", text(again), text(b))
	}
}

// JSON is an object and not a text, and rules can be read from it, with lines for mistakes.
func TestTypes(t *testing.T) {
	s := newStand(t)
	s.Commit("json", map[string]string{
		"/rules.json": `{"version":1,"include":["more.yaml"],"rules":[{"name":"api","per":"ip","limits":"5/minute"}]}`,
		"/more.yaml":  "version: 1\nlists: { office: [192.0.2.0/24] }\n",
	})
	b := next(t, s.source("/rules.json"), "")
	set, err := rules.Parse("rules.json", b.Files["rules.json"], rules.Config{ReadFile: func(name string) ([]byte, error) { return b.Files[name], nil }})
	if err != nil || len(set.Rules()) != 1 || len(b.Files) != 2 {
		t.Fatalf("%v: %s", err, text(b))
	}
	if lines := strings.Count(string(b.Files["rules.json"]), "\n"); lines < 8 {
		t.Errorf("the JSON has %d lines", lines)
	}
	f := func(entry, want string) {
		t.Helper()
		s.setHook(func(w http.ResponseWriter, r *http.Request) bool {
			body := `{"revision":5,"entry":` + entry + `}`
			if r.Header.Get("If-None-Match") == "" {
				body = entry
			}
			_, _ = w.Write([]byte(body))
			return true
		})
		is := s.source("/rules.x")
		b, err := is.Next(t.Context(), "")
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", entry, err, want)
			}
			return
		}
		if got := string(b.Files["rules.x"]); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
	f(`{"type":"TEXT","path":"/rules.x","content":"a: 1\n","revision":5}`, "a: 1\n")
	f(`{"type":"YAML","path":"/rules.x","content":"a: 1\n"}`, "a: 1\n")
	f(`{"type":"JSON","path":"/rules.x","content":{"a":1}}`, "{\n  \"a\": 1\n}\n")
	f(`{"type":"JSON","path":"/rules.x","content":"a text"}`, "\"a text\"\n")
	f(`{"type":"TEXT","path":"/rules.x","content":""}`, "")
	f(`{"type":"TEXT","path":"/rules.x","content":{"a":1}}`, "is not text")
	f(`{"type":"TEXT","path":"/rules.x"}`, "no content")
	f(`{"type":"DIRECTORY","path":"/rules.x"}`, "slash")
	f(`5`, "not JSON of Central Dogma")
}

// Includes, lists and patterns are of the same revision, and changes of each are seen, whatever
// revision the server calls them by and however many there are.
func TestIncludes(t *testing.T) {
	for _, lastChange := range []bool{false, true} {
		for _, lists := range []int{1, 20} {
			t.Run(fmt.Sprint(lastChange, lists), func(t *testing.T) {
				t.Parallel()
				s := newStand(t)
				s.LastChange = lastChange
				files := map[string]string{
					"/r/rules.yaml":     "version: 1\ninclude: [more/a.yaml, d/*.yaml, ../up.yaml, none.yaml]\nlists: { passwd: file /etc/passwd }\n",
					"/r/more/a.yaml":    "lists: { own: file ../own.txt }\n",
					"/r/own.txt":        "192.0.2.1\n",
					"/r/d/x.yaml":       "# x\n",
					"/r/d/deep/y.yaml":  "# y\n",
					"/up.yaml":          "# up\n",
					"/etc/passwd":       "root\n",
					"/r/unrelated.yaml": "# not named\n",
				}
				for i := range lists {
					name := fmt.Sprintf("l%d.txt", i)
					files["/r/"+name] = "192.0.2.2\n"
					files["/r/d/x.yaml"] += fmt.Sprintf("# %d\n", i)
					files["/r/more/a.yaml"] = strings.Replace(files["/r/more/a.yaml"], " }", fmt.Sprintf(", l%d: file ../%s }", i, name), 1)
				}
				s.Commit("all", files)
				s.Commit("later", map[string]string{"/r/own.txt": "192.0.2.9\n"})
				is := s.source("/r/rules.yaml")
				b := next(t, is, "")
				if len(b.Files) != 4+lists || string(b.Files["own.txt"]) != "192.0.2.9\n" || b.Revision != "3" {
					t.Fatalf("revision %s: %s", b.Revision, text(b))
				}
				for _, name := range []string{"own.txt", "l0.txt", "d/x.yaml", "more/a.yaml", "rules.yaml"} {
					changed := string(b.Files[name]) + "# changed\n"
					shortly(func() { s.Commit("change", map[string]string{"/r/" + name: changed}) })
					if b = next(t, is, b.Revision); string(b.Files[name]) != changed {
						t.Errorf("a change of %s: %s", name, text(b))
					}
				}
				// One that fits a pattern appears, one that is missing appears, one goes.
				f := func(name, content string) {
					t.Helper()
					shortly(func() { s.Commit("come and go", map[string]string{"/r/" + name: content}) })
					for b = next(t, is, b.Revision); string(b.Files[name]) != content; {
						b = next(t, is, b.Revision)
					}
				}
				f("d/z.yaml", "# z\n")
				f("none.yaml", "# none\n")
				f("own.txt", "")
				f("d/z.yaml", "")
				f("own.txt", "192.0.2.3\n")
				for _, r := range s.requests() {
					if strings.Contains(r.URL.Path, "up.yaml") || strings.Contains(r.URL.Path, "passwd") {
						t.Errorf("asked for %s", r.URL)
					}
				}
			})
		}
	}
}

// A bundle is one revision of the repository, although files are fetched one by one while others
// commit.
func TestOneRevision(t *testing.T) {
	s := newStand(t)
	version := func(n int) map[string]string {
		return map[string]string{
			"/rules.yaml": fmt.Sprintf("include: [a.yaml, b.yaml]\n# %d\n", n),
			"/a.yaml":     fmt.Sprintf("# %d\n", n), "/b.yaml": fmt.Sprintf("lists: { x: file x.txt }\n# %d\n", n), "/x.txt": fmt.Sprintf("# %d\n", n),
		}
	}
	var n atomic.Int64
	s.Commit("0", version(0))
	s.setHook(func(http.ResponseWriter, *http.Request) bool {
		if i := n.Add(1); i < 100 {
			s.Commit("next", version(int(i)))
		}
		return false
	})
	is := s.source("/rules.yaml")
	have := ""
	for range 10 {
		b := next(t, is, have)
		have = b.Revision
		last := string(b.Files["a.yaml"])
		for name, content := range b.Files {
			if !strings.HasSuffix(string(content), last) {
				t.Fatalf("%s is of another version: %s", name, text(b))
			}
		}
		if n.Load() >= 100 {
			break
		}
	}
}

// Folders are read whole.
func TestFolder(t *testing.T) {
	for _, path := range []string{"", "/", "/team/"} {
		s := newStand(t)
		is := s.source(path)
		fails(t, is, "", "has no files")
		folder := "/" + strings.TrimPrefix(path, "/")
		s.Commit("a", map[string]string{folder + "a.yaml": "# a\n", folder + "lists/b.txt": "b\n", folder + "a_test.yaml": "# test\n"})
		b := next(t, is, "")
		if b.Main != "" || text(b) != "a.yaml=# a | a_test.yaml=# test | lists/b.txt=b" {
			t.Errorf("%q: %s", path, text(b))
		}
		shortly(func() { s.Commit("b", map[string]string{folder + "c.yaml": "# c\n", folder + "lists/b.txt": ""}) })
		if b = next(t, is, b.Revision); text(b) != "a.yaml=# a | a_test.yaml=# test | c.yaml=# c" {
			t.Errorf("%q: %s", path, text(b))
		}
	}
}

// Errors say what was asked and what the server said; afterwards all goes on.
func TestErrors(t *testing.T) {
	s := newStand(t)
	s.Commit("first", map[string]string{"/rules.yaml": "version: 1\n"})
	f := func(status int, body string, want ...string) {
		t.Helper()
		is := s.source("/rules.yaml")
		b := next(t, is, "")
		s.setHook(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		})
		want = append(want, "/rules.yaml", s.url)
		fails(t, is, b.Revision, want...)
		fails(t, s.source("/rules.yaml"), "", want...)
		s.setHook(nil)
		s.Commit("again", map[string]string{"/rules.yaml": fmt.Sprintf("version: 1\n# %d %s\n", status, body)})
		next(t, is, b.Revision)
	}
	f(401, `{"exception":"com.linecorp.centraldogma.common.AuthorizationException","message":""}`, "401 Unauthorized", "token_file")
	f(403, `{}`, "403 Forbidden", "token_file")
	f(404, `{"exception":"com.linecorp.centraldogma.common.ProjectNotFoundException","message":"shop does not\n exist."}`, "404 Not Found: shop does not exist.")
	f(404, `{"exception":"com.linecorp.centraldogma.common.EntryNotFoundException","message":"Path: /rules.yaml"}`, "404 Not Found", "Path")
	f(404, ``, "404 Not Found")
	f(400, `{"message":"invalid prefer header"}`, "400 Bad Request: invalid prefer header")
	f(500, `<html>`, "500 Internal Server Error")
	f(503, `{"exception":"com.linecorp.centraldogma.common.ShuttingDownException"}`, "503 Service Unavailable")
	f(200, ``, "not JSON")
	f(200, `[]`, "not JSON")
	f(200, `{}`, "no revision")
	f(200, `{"revision":-3}`, "no revision")
}

// A server that is busy is left alone for as long as it says.
func TestBusy(t *testing.T) {
	s := newStand(t)
	s.setHook(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(429)
		return true
	})
	is := s.source("/rules.yaml", wait(10*time.Millisecond))
	fails(t, is, "", "429")
	s.setHook(nil)
	fails(t, is, "", "busy")
	if n := len(s.requests()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// A server that answers at once is not asked in a loop, and one that hangs does not keep Next
// from ending.
func TestDelays(t *testing.T) {
	s := newStand(t)
	s.Commit("first", map[string]string{"/rules.yaml": "version: 1\n"})
	is := s.source("/rules.yaml", wait(300*time.Millisecond))
	b := next(t, is, "")
	is.pace.poll = 50 * time.Millisecond
	watch := func(answer func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-None-Match") == "" {
				return false
			}
			answer(w)
			return true
		}
	}
	s.setHook(watch(func(w http.ResponseWriter) { w.WriteHeader(304) }))
	if b, err := is.Next(t.Context(), b.Revision); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
	if n := len(s.requests()); n > 10 {
		t.Errorf("asked %d times in 300ms, with a pace of 50ms", n)
	}
	// Nor one that says that what is known is new.
	s.setHook(watch(func(w http.ResponseWriter) {
		_, _ = w.Write([]byte(`{"revision":2,"entry":{"type":"TEXT","path":"/rules.yaml","content":"old"}}`))
	}))
	if b, err := is.Next(t.Context(), b.Revision); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
	if n := len(s.requests()); n > 10 {
		t.Errorf("asked %d times in 300ms, with a pace of 50ms", n)
	}
	s.setHook(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if b, err := is.Next(ctx, b.Revision); b != nil || err == nil {
		t.Errorf("%+v, %v", b, err)
	}
	s.setHook(func(_ http.ResponseWriter, r *http.Request) bool { time.Sleep(50 * time.Millisecond); return false })
	s.Commit("second", map[string]string{"/rules.yaml": "version: 1\n# 2\n"})
	next(t, is, b.Revision)
}

// A server that was set back to an older revision is followed from there.
func TestServerThatWasSetBack(t *testing.T) {
	s := newStand(t)
	for i := range 5 {
		s.Commit("x", map[string]string{"/rules.yaml": fmt.Sprintf("# %d\n", i)})
	}
	is := s.source("/rules.yaml")
	b := next(t, is, "")
	s.Revert(3)
	if _, err := is.Next(t.Context(), b.Revision); err == nil || !strings.Contains(err.Error(), "revision: 6") {
		t.Errorf("%v", err)
	}
	if b = next(t, is, b.Revision); b.Revision != "3" || text(b) != "rules.yaml=# 1" {
		t.Errorf("%+v", b)
	}
}

// One that was set back and has counted up again to the revision that is known is noticed too.
func TestServerThatCountsAnew(t *testing.T) {
	s := newStand(t)
	s.Commit("x", map[string]string{"/rules.yaml": "# 1\n"})
	s.Commit("x", map[string]string{"/rules.yaml": "# 2\n"})
	is := s.source("/rules.yaml", wait(20*time.Millisecond))
	b := next(t, is, "")
	if b, err := is.Next(t.Context(), b.Revision); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
	s.Revert(2)
	s.Commit("another", map[string]string{"/rules.yaml": "# other\n"})
	fails(t, is, b.Revision, "other files as revision 3")
	fails(t, is, b.Revision, "other files as revision 3")
	if b := next(t, is, ""); text(b) != "rules.yaml=# other" { // as a reload asks
		t.Errorf("%+v", b)
	}
}

func TestToken(t *testing.T) {
	s := newStand(t)
	s.Commit("first", map[string]string{"/rules.yaml": "version: 1\n"})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("appToken-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	next(t, s.source("/rules.yaml", func(o *Options) { o.TokenFile = file }), "")
	if got := s.requests()[0].Header.Get("Authorization"); got != "Bearer appToken-1" {
		t.Errorf("%q", got)
	}
}

func TestURLs(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		s, err := New(Options{URL: url})
		switch {
		case err != nil:
			if want != "" || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", url, err)
			}
		default:
			if got := s.contents(s.folder+s.main, 0).String(); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
	f("dogma://h/p/r/a/rules.yaml", "http://h:36462/api/v1/projects/p/repos/r/contents/a/rules.yaml")
	f("dogmas://h:1/p/r/x y.json", "https://h:1/api/v1/projects/p/repos/r/contents/x%20y.json")
	f("dogma://[::1]/p/r", "http://[::1]:36462/api/v1/projects/p/repos/r/contents/")
	f("dogma://h/p/r/a/", "http://h:36462/api/v1/projects/p/repos/r/contents/a/")
	f("dogma://h/p", "")
	f("dogma://h//r/a", "")
	f("dogma:///p/r/a", "")
	f("http://h/p/r/a", "")
	f("dogma://u:s3cret@h/p/r/a", "")
	f("dogma://h/p/r/a?token=s3cret", "")
	f("dogma://h/p/r/../a", "")
	f("dogma://h/p/r/*.yaml", "")
}
