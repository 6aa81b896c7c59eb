package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// asLocalhost is the address of a test server by another name: a browser takes it for another site, not
// only for another port of the same.
func asLocalhost(at string) string { return strings.Replace(at, "127.0.0.1", "localhost", 1) }

// evilPage is a site that frames the dashboard, and sends orders by a script and by a form.
const evilPage = `<!doctype html><title>evil</title><script>var framed = false, answer = "";</script>
<iframe src="%[1]s/ui/" onload="framed = true"></iframe>
<form id="g" method="post" enctype="text/plain" target="h" action="%[2]s/measures"><input name='{"kind":"ban","as":{"user":"ann"},"for":"1h","reason":"x","message":"' value='"}'></form><iframe name="h"></iframe>
<script>
document.getElementById("g").submit();
fetch("%[2]s/measures", { method: "POST", mode: "no-cors", credentials: "include", headers: { "Content-Type": "text/plain" }, body: '{"kind":"ban","as":{"user":"ann"},"for":"1h","reason":"x"}' })
	.then(() => fetch("%[2]s/overview", { credentials: "include" })).then((r) => r.text()).then((t) => { answer = "read " + t; }, () => { answer = "blocked"; });
</script>`

// Another site can neither frame the page, nor order or read anything by the session of an operator who looks
// at it: a real browser keeps that from happening.
func TestOtherSites(t *testing.T) {
	s := start(t, storyRules)
	p := openAs(t, s, aliceToken)
	p.until(".verdict", "All well")

	// A page that is framed loads its scripts, so they are counted on the way.
	to, err := url.Parse(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	var scripts atomic.Int64
	way := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if strings.HasSuffix(r.In.URL.Path, ".js") {
			scripts.Add(1)
		}
		r.SetURL(to)
	}}
	counted := httptest.NewServer(way)
	defer counted.Close()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, evilPage, counted.URL, s.admin)
	}))
	defer evil.Close()
	p.run(chromedp.Navigate(asLocalhost(evil.URL)))
	p.wait("the other site has tried everything", func() bool {
		var done bool
		p.js(`framed && answer !== ""`, &done)
		return done
	})
	if n := scripts.Load(); n > 0 {
		t.Errorf("the page is framed, and has loaded %d scripts", n)
	}
	var answer string
	if p.js("answer", &answer); answer != "blocked" {
		t.Errorf("another site has %.200s", answer)
	}
	var is struct{ Measures []any }
	if s.ask("/overview", &is); len(is.Measures) != 0 {
		t.Errorf("another site has ordered %v", is.Measures)
	}
	p.run(chromedp.Navigate(counted.URL + "/ui/"))
	p.wait("a page that is not framed loads its scripts", func() bool { return scripts.Load() > 0 })
	p.run(chromedp.Navigate(s.admin + "/ui/"))
	p.until("#who", "alice") // who is still signed in
}
