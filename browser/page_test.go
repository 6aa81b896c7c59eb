package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// tab is a tab of a Chromium.
type tab struct {
	t   *testing.T
	ctx context.Context
	at  string // the admin listener

	mu     sync.Mutex
	hosts  map[string]bool // that were asked
	weight float64         // bytes of files
	wrong  []string        // what the browser complains about
}

// open starts a Chromium with one tab.
func open(t *testing.T, s *server) *tab {
	t.Helper()
	testdep.Need(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900),
		chromedp.WSURLReadTimeout(time.Minute))
	base, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(base)
	t.Cleanup(closeTab)
	p := &tab{t: t, ctx: ctx, at: s.admin, hosts: make(map[string]bool)}
	chromedp.ListenTarget(ctx, p.heard)
	p.run(network.Enable(), runtime.Enable(), log.Enable())
	return p
}

// heard notes whom the page asks, and what goes wrong.
func (p *tab) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			p.hosts[u.Host] = true
		}
	case *network.EventLoadingFinished:
		p.weight += e.EncodedDataLength
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		// Answers such as 401 are told of as errors; they are what the story is about.
		if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "Failed to load resource") {
			p.wrong = append(p.wrong, e.Entry.Text)
		}
	}
}

// pageTimeout is how long a page may take on a busy machine.
const pageTimeout = 30 * time.Second

func (p *tab) run(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	if chromedp.FromContext(p.ctx).Browser == nil { // the first run starts the browser, which must outlive it
		cancel()
		ctx, cancel = p.ctx, func() {}
	}
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page shows:\n%s", err, p.text("body"))
	}
}

// js returns what an expression is.
func (p *tab) js(expression string, to any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Evaluate(expression, to, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) })); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

// text is what an element shows; "" if there is none.
func (p *tab) text(selector string) (text string) {
	ctx, cancel := context.WithTimeout(p.ctx, pageTimeout)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("(document.querySelector(%q) || {}).innerText || ''", selector), &text)) // then there is no page
	return text
}

// until waits for an element to show a text.
func (p *tab) until(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("%q shows %q", selector, text), func() bool { return strings.Contains(p.text(selector), text) })
}

// wait waits for something.
func (p *tab) wait(what string, is func() bool) {
	p.t.Helper()
	if !testdep.Await(pageTimeout, is) {
		p.t.Fatalf("it is not so that %s; the page shows:\n%s", what, p.text("body"))
	}
}

// answered waits until a search of a user gets a status.
func (p *tab) answered(s *server, user string, status int) {
	p.t.Helper()
	p.wait(user+" is answered with "+http.StatusText(status), func() bool { got, _ := s.send(user, "/search"); return got == status })
}

// refreshed waits until the page has asked a path again, and has shown the answer.
func (p *tab) refreshed(path string) {
	p.t.Helper()
	asked := func() (n int) {
		p.js(fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.name.includes(%q)).length`, path), &n)
		return n
	}
	before := asked()
	p.wait("the page is refreshed", func() bool { return asked() >= before+2 }) // the first of them is shown by then
}

// goTo shows a page of the dashboard.
func (p *tab) goTo(hash string) {
	p.t.Helper()
	p.js(fmt.Sprintf("location.hash = %q; 0", hash), nil)
}

// press presses the button or link that has this text.
func (p *tab) press(text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button, a")].find((e) => e.textContent.trim() === %q && !e.disabled)`, text)
	p.wait("there is "+text, func() bool {
		var there bool
		p.js("Boolean("+find+")", &there)
		return there
	})
	p.js(find+".click(); 0", nil)
}

// fill types into a field, as a person does: it gets the events.
func (p *tab) fill(selector, value string) {
	p.t.Helper()
	p.wait("there is "+selector, func() bool {
		var there bool
		p.js(fmt.Sprintf("Boolean(document.querySelector(%q))", selector), &there)
		return there
	})
	p.js(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.value = %q; for (const n of ["input", "change"]) e.dispatchEvent(new Event(n, { bubbles: true })); })(); 0`, selector, value), nil)
}

// openAs is open for an operator who is signed in.
func openAs(t *testing.T, s *server, token string) *tab {
	t.Helper()
	p := open(t, s)
	p.signIn(token)
	return p
}

func (p *tab) signIn(token string) {
	p.t.Helper()
	p.run(chromedp.Navigate(p.at + "/"))
	p.run(chromedp.WaitVisible(`input[name=token]`), chromedp.SendKeys(`input[name=token]`, token))
	p.press("Sign in")
	p.until("#who", "·")
}

// look sets how the page is looked at.
func (p *tab) look(width, height int64, scheme string) {
	p.t.Helper()
	p.run(emulation.SetDeviceMetricsOverride(width, height, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// fits fails for what is wider than the window, and for a table that is meant for a phone and is wider than its place.
func (p *tab) fits(what string) {
	p.t.Helper()
	var wide []string
	p.js(`[document.documentElement, ...document.querySelectorAll(".scroll:has(.stack)")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.ariaLabel || "the page")`, &wide)
	if len(wide) > 0 {
		p.t.Errorf("%s: %s is too wide", what, strings.Join(wide, ", "))
	}
}

// accessible fails for what axe-core finds serious.
func (p *tab) accessible(what string) {
	p.t.Helper()
	var known bool
	if p.js("typeof axe !== 'undefined'", &known); !known {
		source, err := os.ReadFile("node_modules/axe-core/axe.min.js")
		if err != nil {
			if os.Getenv("CI") == "true" {
				p.t.Fatalf("axe-core: %v; run npm ci in browser", err)
			}
			p.t.Log("axe-core is not there, so accessibility is not tested: run npm ci in browser")
			return
		}
		p.js(string(source)+"; 0", nil)
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	p.js(`axe.run(document).then((r) => r.violations)`, &found)
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" {
			nodes, _ := json.Marshal(v.Nodes)
			p.t.Errorf("%s: %s (%s): %s: %.600s", what, v.ID, v.Impact, v.Help, nodes)
		}
	}
}
