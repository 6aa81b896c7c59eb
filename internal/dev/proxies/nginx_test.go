package proxies

import (
	"os"
	"path/filepath"
	"testing"

	"tidegate.dev/tidegate/internal/dev/readings"
)

// nginx that serves files itself reads paths in its own way, and passes on none.
func TestNginxServesFiles(t *testing.T) {
	d := newDoor(t, readings.Rules)
	root := t.TempDir()
	for _, route := range []string{"denied", "limited", "exempt", "other"} {
		for _, name := range []string{"x", "index.html", "y/index.html"} {
			writeFile(t, filepath.Join(root, route, name), route)
		}
	}
	writeFile(t, filepath.Join(root, "index.html"), "other")
	writeFile(t, filepath.Join(root, "404.html"), "missing")
	c := newClient(t, all[0].run(t, d.addr, "127.0.0.1:9000", "proxy_pass http://127.0.0.1:9000;", "root "+root+"; error_page 404 /404.html; #"))
	served := map[string]int{}
	for _, target := range readings.Read(t).Targets("") {
		got := c.get(target)
		asked := d.decisions()
		served[got.body]++
		switch route := got.body; route {
		case "denied", "limited", "exempt", "other", "missing":
			if len(asked) != 1 {
				t.Errorf("%q: %s, %d: asked about %d times", target, route, got.status, len(asked))
			} else if wrong := readings.Escaped(route, asked[0]); wrong != "" {
				t.Errorf("%q: %s, %d: %s (held to %v)", target, route, got.status, wrong, asked[0])
			}
		}
	}
	if served["limited"] < 10 || served["exempt"] < 10 || served["other"] < 10 {
		t.Errorf("served %v", served)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// An internal redirect of nginx is still the same request: it is counted once, and the
// client is told what is left.
func TestNginxCountsRedirectsOnce(t *testing.T) {
	const rules = "version: 1\nrules: [ { name: few, per: ip, limits: 4/hour } ]\n"
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "index.html"), "index")
	writeFile(t, filepath.Join(root, "404.html"), "404")
	d := newDoor(t, rules)
	c := newClient(t, all[0].run(t, d.addr, "127.0.0.1:9000", "proxy_pass http://127.0.0.1:9000;", "root "+root+"; try_files $uri $uri/ =404; error_page 404 /404.html; error_page 403 = @tidegate_refused; #"))
	for i, want := range []string{"index", "404", "index", "404"} {
		got := c.get([]string{"/", "/missing"}[i%2])
		if asked := d.decisions(); got.body != want || len(asked) != 1 || got.header.Get("RateLimit") == "" {
			t.Errorf("request %d: %s, asked %d times, RateLimit: %s", i, got.body, len(asked), got.header.Get("RateLimit"))
		}
	}
	if got := c.get("/"); got.status != 429 {
		t.Errorf("the fifth: %d", got.status)
	}
}
