package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is what has the focus, as people call it.
func (p *tab) focused() (name string) {
	p.t.Helper()
	p.js(`(() => { const e = document.activeElement; return e === document.body ? "" : e.ariaLabel || (e.labels && e.labels[0] ? e.labels[0].firstChild.data : e.textContent.trim()); })()`, &name)
	return name
}

// tabTo presses the tab key until something has the focus, which can be seen on it.
func (p *tab) tabTo(name string) {
	p.t.Helper()
	const most = 80
	for range most {
		p.run(chromedp.KeyEvent(kb.Tab))
		if p.focused() != name {
			continue
		}
		var seen bool
		if p.js(`document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`, &seen); !seen {
			p.t.Errorf("one does not see that %s has the focus", name)
		}
		return
	}
	p.t.Fatalf("%q is not reached by the tab key; %q has the focus", name, p.focused())
}

func (p *tab) keys(text string) {
	p.t.Helper()
	p.run(chromedp.KeyEvent(text))
}

// Somebody without a mouse gets everywhere, sees where they are, and never loses their place.
func TestKeyboard(t *testing.T) {
	s := serve(t, storyRules)
	s.load()
	p := open(t, s)
	p.run(chromedp.Navigate(s.admin + "/"))
	p.wait("the field for the token has the focus", func() bool { return p.focused() == "Your token" })
	p.keys(aliceToken + kb.Enter)
	p.until("#who", "alice")
	p.until(".verdict", "All well")
	p.wait("the content has the focus", func() bool { var is bool; p.js(`document.activeElement.id === "main"`, &is); return is })

	t.Log("pages")
	p.run(chromedp.Evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); 0", nil))
	p.tabTo("Offenders")
	p.keys(kb.Enter)
	p.until("main table", "user=heavy")
	p.js(`document.querySelector(".brand").focus(); 0`, nil)
	p.run(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(8))) // shift
	if got := p.focused(); got != "Skip to the content" {
		t.Errorf("%q is before everything else", got)
	}
	p.keys(kb.Enter)
	p.wait("the content has the focus", func() bool { var is bool; p.js(`document.activeElement.id === "main"`, &is); return is })
	p.until("h1", "Offenders") // and not another page

	t.Log("a link stays that of the same person while the list changes")
	p.tabTo("user=heavy")
	p.wait("the list has another order", func() bool {
		for range 20 {
			s.send("greta", "/search")
			s.send("greta", "/search")
			s.send("greta", "/search")
		}
		before, _, _ := strings.Cut(p.text("main table"), "user=heavy")
		return strings.Contains(before, "user=greta")
	})
	if got := p.focused(); got != "user=heavy" {
		t.Errorf("%q has the focus", got)
	}
	p.keys(kb.Enter)
	p.until("h1", "user=heavy")

	t.Log("an override")
	p.goTo("#/why")
	p.until("main", "Paste it here")
	p.goTo("#/key?as=user%3Dheavy&rule=search")
	p.until("h1", "user=heavy")
	p.tabTo("Override")
	p.keys(kb.Enter)
	p.wait("the first field has the focus", func() bool { return p.focused() == "Rule" })
	p.tabTo("no limit")
	p.keys(kb.Enter)
	p.tabTo("Reason, for the audit log")
	p.keys("no mouse here")
	p.tabTo("Show effect")
	p.keys(kb.Enter)
	p.until(".act", "They get unlimited under search")
	p.tabTo("Override now")
	p.keys(kb.Enter)
	p.until(".act", "Override is done")
	p.answered(s, "heavy", http.StatusOK)
	p.wait("what was done has the focus", func() bool { return strings.HasPrefix(p.focused(), "Override is done") })

	t.Log("and its end")
	p.js(`document.getElementById("main").focus(); 0`, nil)
	p.tabTo("Reason to end it")
	p.keys("done")
	p.keys(kb.Enter)
	p.until("main", "No override and no ban holds for them.")
	p.wait("the list has the focus", func() bool { return strings.HasPrefix(p.focused(), "No override") })

	t.Log("titles")
	for _, page := range []struct{ hash, title string }{
		{"#/key?as=user%3Dheavy", "user=heavy"}, {"#/rule?name=search", "search"}, {"#/rules", "Rules"}, {"#/why", "Why"}, {"#/audit", "Audit"},
	} {
		p.goTo(page.hash)
		p.wait("the title is "+page.title, func() bool {
			var title string
			p.js("document.title", &title)
			return title == fmt.Sprintf("%s – Tidegate", page.title)
		})
	}
	p.checkPeace(s)
}
