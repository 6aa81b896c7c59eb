package browser

import (
	"strings"
	"testing"
)

// Whoever is taken off the list while they look at a live page, or signs out, sees nothing more of it, whichever way they
// try to go back.
func TestSignedOut(t *testing.T) {
	s := start(t, storyRules)
	p := open(t, s)
	gone := func() {
		t.Helper()
		p.goTo("#/offenders")
		p.js("history.back(); 0", nil)
		p.goTo("#/")
		p.until("main", "Your token")
		if text := p.text("body"); strings.Contains(text, "All well") || strings.Contains(text, "search") || strings.Contains(text, "alice") {
			t.Errorf("somebody who is signed out sees\n%s", text)
		}
	}

	t.Log("signed out")
	p.signIn(aliceToken)
	p.until(".verdict", "All well")
	p.press("Sign out")
	p.until("main", "Your token")
	gone()

	t.Log("taken off the list")
	p.signIn(aliceToken)
	p.until(".verdict", "All well")
	s.write("operators", operator("bob", "view", bobToken))
	p.until("main", "Your session has ended. Sign in again.")
	gone()
	p.checkPeace(s)
}

// A page that is one too many says so, and is fed when another one is closed.
func TestTooManyPages(t *testing.T) {
	s := start(t, storyRules, "--admin.pages=1")
	first, second := open(t, s), open(t, s)
	first.signIn(aliceToken)
	first.until(".verdict", "All well")
	second.signIn(carolToken)
	second.until("#offline", "The server feeds as many pages as it may (admin.pages), and not this one.")
	second.until("main", "Loading…")
	second.accessible("too many pages")
	first.press("Explain")
	second.until(".verdict", "All well")
	second.wait("a page that is fed has no trouble", func() bool { return second.text("#offline") == "" })
}
