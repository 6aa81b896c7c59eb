package browser

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestStory is a night at the dashboard: somebody is refused, and is helped.
func TestStory(t *testing.T) {
	s := serve(t, storyRules)
	p := open(t, s)
	s.load()

	t.Log("sign in")
	p.signIn(aliceToken)
	p.checkCookie()
	p.until(".verdict", "All well")
	p.checkWeight()

	t.Log("live numbers move")
	p.wait("something was admitted", func() bool { return p.text("#admitted") != "" && p.text("#admitted") != "0" })
	before := p.text("#admitted")
	p.wait("the number moves", func() bool { return p.text("#admitted") != before })
	p.wait("something was refused", func() bool { return p.text("#refused") != "0" })
	p.until("main", "search")
	p.accessible("overview")

	t.Log("the exhausted key is found, inspected and overridden")
	p.press("Offenders")
	p.until("main table", "user=heavy")
	p.accessible("offenders")
	p.press("user=heavy")
	p.until("main", "10/10s sliding_log")
	p.press("Override")
	p.fill("select[name=rule]", "search")
	p.fill("input[name=limits]", "1000/10s")
	p.fill("select[name=for]", "1m")
	p.fill("input[name=reason]", "import, asked by Ann")
	p.press("Show effect")
	p.until(".act", "They get 1000/10s under search")
	p.accessible("effect of an override")
	p.press("Override now")
	p.until(".act", "Override is done")
	ordered := time.Now()
	p.answered(s, "heavy", http.StatusOK)
	p.press("Overview")
	p.until("main", "import, asked by Ann")

	t.Log("somebody else is banned, which is undone")
	p.goTo("#/key?as=user%3Dcleo")
	p.press("Ban")
	p.fill(".act input[name=reason]", "scrapes")
	p.press("Show effect")
	p.until(".act", "Every request of theirs is refused")
	p.press("Ban now")
	p.until(".act", "Ban is done")
	p.until("main table", "banned")
	p.answered(s, "cleo", http.StatusForbidden)
	p.fill(".note input[name=reason]", "it was somebody else")
	p.press("End it now")
	p.until("main", "No override and no ban holds for them.")
	p.wait("nothing says that the ban holds", func() bool {
		return !strings.Contains(p.text("main table"), "banned") && !strings.Contains(p.text(".act"), "Ban is done")
	})
	p.answered(s, "cleo", http.StatusOK)

	t.Log("a bad edit shows where it is wrong, and changes nothing")
	hash := s.rulesHash()
	p.press("Rules")
	p.fill("textarea", strings.Replace(storyRules, "limits: 10/10s", "limit: 10/10s", 1))
	p.press("Try")
	p.until(".caret", "limit: 10/10s\n^")
	p.until("main", "did you mean")
	p.accessible("a bad edit")
	if s.rulesHash() != hash {
		t.Error("a bad edit changed the rules")
	}

	t.Log("a good one is applied, and rolled back")
	p.fill("textarea", twiceSearch)
	p.press("Try")
	p.until("main", "These rules load.")
	p.until(".diff", "+     limits: 20/10s")
	p.fill("input[name=reason]", "twice as many searches")
	p.press("Apply")
	p.until("main", "In force: ")
	if text, err := os.ReadFile(filepath.Join(s.dir, "rules.yaml")); err != nil || string(text) != twiceSearch || s.rulesHash() == hash {
		t.Errorf("%v: the file is\n%s", err, text)
	}
	var slip string
	p.wait("somebody is refused under the new rules", func() bool { _, slip = s.send("greta", "/search"); return slip != "" })
	p.press("Compare, go back")
	p.until(".diff", "−     limits: 20/10s")
	p.fill("input[name=reason]", "too many")
	p.press("Go back")
	p.until("main", "In force: "+hash[:12])
	if got := s.rulesHash(); got != hash {
		t.Errorf("the rules are %s after a rollback, not %s", got, hash)
	}

	t.Log("a slip is opened, a forged one is not")
	p.fill("#q", slip)
	p.press("Find")
	p.until("main", "user=greta was refused by the rule search (20/10s sliding_log)")
	p.until("main", "not in force any more")
	p.until("main pre", "limits: 20/10s")
	p.accessible("why")
	p.fill("#q", slip[:len(slip)-6]+"AAAAAA")
	p.press("Find")
	p.until(".note.bad", "cannot be opened")

	t.Log("other pages")
	p.goTo("#/rule?name=search")
	p.until("main", "Is the number right?")
	p.until("main", "It has refused nobody here.") // since its number was changed back
	p.accessible("rule")
	p.press("Explain")
	p.fill("input[name=url]", "/search?q=x")
	p.fill("input[name=as]", "user=ann")
	p.press("Explain")
	p.js(`document.querySelector("form button.main").click(); 0`, nil)
	p.until("main", "10/10s sliding_log")
	p.accessible("explain")
	p.press("Fleet")
	p.until("main", "there is no fleet")
	p.accessible("fleet")

	t.Log("each step is in the audit log")
	p.press("Audit")
	for _, want := range []string{"sign-in", "override", "import, asked by Ann", "apply", "twice as many searches", "rollback", "too many", "why", "cannot be opened"} {
		p.until("main table", want)
	}
	p.accessible("audit")

	t.Log("the override expires")
	for time.Since(ordered) < time.Minute {
		time.Sleep(time.Second) // the shortest that an operator can choose
	}
	p.answered(s, "heavy", http.StatusTooManyRequests)

	t.Log("is the number right?")
	p.wait("there are refusals to judge by", func() bool {
		var is struct{ Fit struct{ Refusals int } }
		s.ask("/rules/rule?rule=search", &is)
		return is.Fit.Refusals > 40
	})
	p.goTo("#/rule?name=search")
	p.until("main", "Refusals since")

	t.Log("how it looks")
	p.pictures()

	t.Log("sign out")
	p.press("Sign out")
	p.until("main", "Your token")
	p.checkPeace(s)
}

// checkCookie wants a session that scripts and other sites cannot use.
func (p *tab) checkCookie() {
	p.t.Helper()
	var cookies []*network.Cookie
	p.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != network.CookieSameSiteStrict {
		p.t.Errorf("%+v", cookies)
	}
	var seen string
	if p.js("document.cookie", &seen); seen != "" {
		p.t.Errorf("scripts see %q", seen)
	}
	for _, store := range []string{"localStorage.length", "sessionStorage.length"} {
		var n int
		if p.js(store, &n); n != 0 {
			p.t.Errorf("%s is %d", store, n)
		}
	}
}

// mostWeight is how many bytes the first page may take, with everything that it shows.
const mostWeight = 150_000

// checkWeight wants that the first page weighs little.
func (p *tab) checkWeight() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.weight > mostWeight || p.weight < 10_000 {
		p.t.Errorf("the first page weighs %.0f bytes", p.weight)
	}
}

// checkPeace wants that the page asked nobody else, and that the browser is content.
func (p *tab) checkPeace(s *server) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err := url.Parse(s.admin)
	if err != nil || len(p.hosts) != 1 || !p.hosts[at.Host] {
		p.t.Errorf("the page asked %v, and is served by %s", p.hosts, s.admin)
	}
	if len(p.wrong) > 0 {
		p.t.Errorf("the browser complains: %s", strings.Join(p.wrong, "\n"))
	}
}
