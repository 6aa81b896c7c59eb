package httpsource

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(files map[string][]byte) string {
	return strings.Join(slices.Sorted(maps.Keys(files)), " ")
}

// Includes and lists are fetched from beside the main file, in the same bundle, and their
// changes are seen, however many there are and whether the server waits or not.
func TestIncludesAndLists(t *testing.T) {
	for _, lists := range []int{1, 6, 30} {
		for _, holds := range []bool{false, true} {
			t.Run(fmt.Sprint(lists, holds), func(t *testing.T) {
				t.Parallel()
				files := map[string]string{
					"/r/rules.yaml":    "version: 1\ninclude: more/a.yaml\n",
					"/r/more/a.yaml":   "include: [b.yaml, ../rules.yaml]\nlists: { own: file ../lists/own.txt }\n" + rule("1/second")[len("version: 1\n"):],
					"/r/more/b.yaml":   "lists:\n",
					"/r/lists/own.txt": "192.0.2.1\n",
				}
				want := []string{"lists/own.txt", "more/a.yaml", "more/b.yaml", "rules.yaml"}
				for i := range lists {
					files["/r/more/b.yaml"] += fmt.Sprintf("  l%d: file l%d.txt\n", i, i)
					files[fmt.Sprintf("/r/more/l%d.txt", i)] = fmt.Sprintf("192.0.2.%d\n", i)
					want = append(want, fmt.Sprintf("more/l%d.txt", i))
				}
				slices.Sort(want)
				site := newSite(t, files)
				site.holds = holds
				s := site.source("/r/rules.yaml")
				b := next(t, s, "")
				if got := names(b.Files); got != strings.Join(want, " ") {
					t.Fatalf("%s, want %s", got, want)
				}
				for _, name := range []string{"more/l0.txt", "more/b.yaml", "lists/own.txt", "rules.yaml", "more/a.yaml"} {
					text := string(b.Files[name]) + "# changed\n"
					time.AfterFunc(20*time.Millisecond, func() { site.set("/r/"+name, text) })
					b = next(t, s, b.Revision)
					if string(b.Files[name]) != text {
						t.Errorf("a change of %s: %q", name, b.Files[name])
					}
				}
			})
		}
	}
}

// A file that is missing is left out of the bundle, and seen when it appears; one that goes is
// missed.
func TestMissingFileAppears(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": "include: a.yaml\nlists: { x: file x.txt }\n"})
	site.holds = true
	s := site.source("/rules.yaml")
	b := next(t, s, "")
	if names(b.Files) != "rules.yaml" {
		t.Fatalf("%q", names(b.Files))
	}
	site.set("/x.txt", "192.0.2.1\n")
	b = next(t, s, b.Revision)
	if names(b.Files) != "rules.yaml x.txt" {
		t.Fatalf("%q", names(b.Files))
	}
	site.set("/a.yaml", rule("1/second"))
	b = next(t, s, b.Revision)
	if names(b.Files) != "a.yaml rules.yaml x.txt" {
		t.Fatalf("%q", names(b.Files))
	}
	site.set("/x.txt", "")
	b = next(t, s, b.Revision)
	if names(b.Files) != "a.yaml rules.yaml" {
		t.Fatalf("%q", names(b.Files))
	}
	// One that is no longer needed is no longer asked for.
	site.set("/rules.yaml", rule("1/second"))
	b = next(t, s, b.Revision)
	s.o.Wait = 50 * time.Millisecond
	site.mu.Lock()
	site.holds = false
	site.mu.Unlock()
	asked := true // requests that were given up may still arrive
	for end := time.Now().Add(time.Minute); asked && time.Now().Before(end); {
		site.paths()
		unchanged(t, s, b.Revision)
		asked = slices.ContainsFunc(site.paths(), func(path string) bool { return path != "/rules.yaml" })
	}
	if asked {
		t.Error("the others are still asked for")
	}
}

// Nothing is asked for above the folder, or on another host, whatever the files say.
func TestReferencesOutside(t *testing.T) {
	site := newSite(t, map[string]string{
		"/r/rules.yaml": "include: [../up.yaml, /abs.yaml, 'https://other.example/x.yaml', '//other.example/y', sub/../../up.yaml, 'a?b.yaml#c']\nlists: { x: file /etc/passwd, y: file ../../y.txt }\n",
		"/up.yaml":      "", "/abs.yaml": "",
	})
	s := site.source("/r/rules.yaml")
	fails(t, s, "", "does not list its files") // a?b is a pattern
	site.set("/r/rules.yaml", strings.ReplaceAll(site.files["/r/rules.yaml"], "a?b.yaml#c", "a%2e%2e#b.yaml"))
	b := next(t, s, "")
	if names(b.Files) != "rules.yaml" {
		t.Errorf("%q", names(b.Files))
	}
	for _, path := range site.paths() {
		if path != "/r/rules.yaml" && path != "/r/a%2e%2e#b.yaml" {
			t.Errorf("asked for %s", path)
		}
	}
}

// The query of the URL is that of all files, and escapes in its path stay.
func TestURLsOfFiles(t *testing.T) {
	f := func(main, name, want string) {
		t.Helper()
		s, err := New(Options{URL: main})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.urlOf(name).String(); got != want {
			t.Errorf("%s beside %s: %s, want %s", name, main, got, want)
		}
	}
	f("https://h/rules.yaml", "a/b.yaml", "https://h/a/b.yaml")
	f("https://h/x/rules.yaml?ref=main", "b.yaml", "https://h/x/b.yaml?ref=main")
	f("https://h/x/", "b c.yaml", "https://h/x/b%20c.yaml")
	f("https://h", "b.yaml", "https://h/b.yaml")
	f("https://h/a%2Fb/rules.yaml", "c?.yaml", "https://h/a%2Fb/c%3F.yaml")
}

// Files that are replaced one after the other come as one set: neither half is returned.
func TestSetThatIsBeingReplaced(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": "lists: { x: file x.txt }\n# 1", "/x.txt": "192.0.2.1"})
	site.holds = true
	s := site.source("/rules.yaml")
	b := next(t, s, "")
	late := false
	site.setHook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Prefer") == "" && r.URL.Path == "/rules.yaml" && !late {
			late = true // the list follows while the set is collected
			site.set("/x.txt", "192.0.2.2")
		}
		return false
	})
	site.set("/rules.yaml", "lists: { x: file x.txt }\n# 2")
	b = next(t, s, b.Revision)
	if got := string(b.Files["rules.yaml"]) + string(b.Files["x.txt"]); !strings.Contains(got, "# 2") || !strings.Contains(got, "192.0.2.2") {
		t.Errorf("%q", got)
	}
}

// Too many files and too large ones are errors, without asking for all of them.
func TestBounds(t *testing.T) {
	text := "include:\n"
	for i := range 1100 {
		text += fmt.Sprintf("  - f%d.yaml\n", i)
	}
	site := newSite(t, map[string]string{"/rules.yaml": text})
	fails(t, site.source("/rules.yaml"), "", "more than 1000 files")
	if n := len(site.paths()); n > 10 {
		t.Errorf("asked %d times", n)
	}
	large := map[string]string{"/rules.yaml": "lists: { a: file a.txt, b: file b.txt, c: file c.txt, d: file d.txt, e: file e.txt }\n"}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		large["/"+name+".txt"] = strings.Repeat("#", 1<<20)
	}
	fails(t, newSite(t, large).source("/rules.yaml"), "", "larger than 4 MiB")
}
