package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const oddRules = `version: 1
identify: { who: query who }
rules:
  - { name: few, per: who, limits: 1/hour }
`

// oddNames are what callers call themselves, and how a page shows it.
var oddNames = []struct{ name, shown string }{
	{`<img src=x onerror="document.title='evil'">`, `<img src=x onerror="document.title='evil'">`},
	{`"'` + "`" + `><script>alert(1)</script>`, `"'` + "`" + `><script>alert(1)</script>`},
	{"&amp; %41 + # ? a=b&c=d", "&amp; %41 + # ? a=b&c=d"},
	{"John  Doe", "John  Doe"},
	{"\u202enimda", `\u202enimda`},
	{"ad\u200bmin", `ad\u200bmin`},
	{"שלום עולם", "שלום עולם"},
	{"\u2066a\u2069 b", `\u2066a\u2069 b`},
	{strings.Repeat("long", 15), strings.Repeat("long", 15)},
}

// Whatever callers call themselves, the page shows it as text, in the order of its letters and with what
// cannot be seen, leads to their counters and to nobody else's, and stays as wide as it is.
func TestOddNames(t *testing.T) {
	testdep.Need(t, "chromium")
	s := serve(t, oddRules)
	for _, odd := range oddNames {
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
			res, err := http.Get(s.gateway + "/healthz?who=" + url.QueryEscape(odd.name))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Fatalf("%q, %d: answered %d, want %d", odd.name, i, res.StatusCode, want)
			}
		}
	}
	p := openAs(t, s, aliceToken)
	p.goTo("#/offenders")
	type link struct{ Text, To string }
	var links []link
	p.wait("all are listed", func() bool {
		p.js(`[...document.querySelectorAll("main tbody td:first-child a")].map((a) => ({ Text: a.textContent, To: a.getAttribute("href") }))`, &links)
		return len(links) == len(oddNames)
	})
	isPage := func(name, shown string) {
		t.Helper()
		p.wait(fmt.Sprintf("there is the page of %q", name), func() bool {
			var title string
			p.js(`(document.querySelector("main h1") || {}).textContent || ""`, &title)
			return strings.HasPrefix(title, "who="+shown) && strings.Contains(p.text("main table"), "refused for")
		})
		var wide, foreign bool
		p.js("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wide)
		p.js(`document.querySelector("main img, main script") !== null`, &foreign)
		if wide || foreign {
			t.Errorf("%q: the page is too wide: %v, has elements of theirs: %v", name, wide, foreign)
		}
	}
	for _, odd := range oddNames {
		i := slices.IndexFunc(links, func(l link) bool { return strings.HasPrefix(l.Text, "who="+odd.shown) })
		if i < 0 {
			t.Errorf("%q is not shown as %q:\n%q", odd.name, odd.shown, links)
			continue
		}
		p.goTo(links[i].To)
		isPage(odd.name, odd.shown)
		p.goTo("#/audit")
		p.until("main h1", "Audit")
		if strings.ContainsAny(odd.name, "\u200b\u202e\u2066=") { // nobody types these
			continue
		}
		p.js(fmt.Sprintf(`document.getElementById("q").value = %q; document.getElementById("search").requestSubmit(); 0`, "who="+odd.name), nil)
		isPage(odd.name, odd.shown)
	}
	p.checkPeace(s)
}

// A page says that its server does not answer while it is so, whichever page it is, and the next one does not go on
// saying it.
func TestServerIsAway(t *testing.T) {
	s := start(t, storyRules)
	p := openAs(t, s, aliceToken)
	const silent = "The server does not answer. What you see is from before; it is asked again."
	away := func(is bool) { p.run(network.EmulateNetworkConditions(is, 0, -1, -1)) }
	peace := func() bool { return p.text("#offline") == "" }
	for _, page := range [][2]string{{"#/key?as=user%3Dann", "search"}, {"#/offenders", "Nobody was refused"}, {"#/fleet", "Rules in force"}} {
		p.goTo(page[0])
		p.until("main", page[1])
		away(true)
		p.until("#offline", silent)
		p.until("main", page[1]) // what was there stays
		away(false)
		p.wait("it is not said any more", peace)
	}
	p.goTo("#/")
	p.until(".verdict", "All well")
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.until("#offline", silent)
	p.until(".verdict", "All well")
	p.goTo("#/explain")
	p.until("main h1", "Explain")
	p.wait("a page that asks nothing does not say it", peace)
}
