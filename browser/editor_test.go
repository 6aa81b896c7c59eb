package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	twiceSearch  = strings.Replace(storyRules, "limits: 10/10s", "limits: 20/10s", 1)
	halfSite     = strings.Replace(storyRules, "rate: 500/second", "rate: 250/second", 1)
	bothOfThem   = strings.Replace(twiceSearch, "rate: 500/second", "rate: 250/second", 1)
	overtaken    = "Other rules came in force while you were writing"
	editedBefore = "This is the text that you began."
)

// edited wants the text of the editor.
func (p *tab) edited(want string) {
	p.t.Helper()
	p.wait("the text is as it was left", func() bool {
		var text string
		p.js(`(document.querySelector("textarea") || {}).value || ""`, &text)
		return text == want
	})
}

// Of two operators who change the rules at once, the second is told what the first one did, keeps
// the text, and can apply it to what is in force then.
func TestTwoOperators(t *testing.T) {
	s := start(t, storyRules)
	alice, carol := openAs(t, s, aliceToken), openAs(t, s, carolToken) // each with cookies of its own

	t.Log("both try a change, and both load")
	for p, text := range map[*tab]string{alice: twiceSearch, carol: halfSite} {
		p.press("Rules")
		p.fill("textarea", text)
		p.press("Try")
		p.until("main", "These rules load.")
	}
	alice.fill("input[name=reason]", "twice as many searches")
	alice.press("Apply")
	alice.until("main", "In force: ")
	first := s.rulesHash()

	t.Log("the second is told, and keeps the text and the reason")
	carol.fill("input[name=reason]", "half for all")
	carol.press("Apply")
	carol.until("#meanwhile", overtaken)
	carol.until("#meanwhile", ", by alice: twice as many searches")
	carol.until("#meanwhile", "Nothing of yours was applied")
	carol.until("#meanwhile .diff", "−     limits: 10/10s\n+     limits: 20/10s")
	carol.edited(halfSite)
	var reason string
	if carol.js(`document.querySelector("input[name=reason]").value`, &reason); reason != "half for all" {
		t.Errorf("the reason is %q", reason)
	}
	if s.rulesHash() != first {
		t.Error("the second has changed the rules")
	}
	carol.accessible("overtaken")
	if *shots != "" {
		carol.shoot(*shots + "/conflict.png")
	}

	t.Log("what would undo the work of the first is seen")
	carol.press("Try")
	carol.until("form .diff", "−     limits: 20/10s\n+     limits: 10/10s")

	t.Log("both changes together")
	carol.fill("textarea", bothOfThem)
	carol.press("Try")
	carol.until("form .diff", "+     limits: { rate: 250/second")
	if strings.Contains(carol.text("form .diff"), "limits: 10/10s") {
		t.Error("the change of the first is undone")
	}
	carol.press("Apply")
	carol.until("main", "In force: ")
	carol.until("main", "by carol: half for all")
	carol.edited(bothOfThem)

	t.Log("whoever looks at old rules is told when they try others")
	alice.fill("textarea", strings.Replace(twiceSearch, "20/10s", "30/10s", 1))
	alice.press("Try")
	alice.until("#meanwhile", ", by carol: half for all")
	alice.press("Discard")
	alice.edited(bothOfThem)
	alice.wait("the draft is gone", func() bool { return alice.text("#meanwhile") == "" })

	carol.press("Audit")
	carol.until("main table", "failed")
	carol.until("main table", "other rules are in force by now")
}

// A text that was not applied yet is there after a look at another page, and after the session has ended; not for
// somebody else who signs in.
func TestDraftStays(t *testing.T) {
	s := start(t, storyRules)
	p := openAs(t, s, aliceToken)
	p.press("Rules")
	p.fill("textarea", twiceSearch)
	p.press("Overview")
	p.until(".verdict", "All well")
	p.press("Rules")
	p.until("#meanwhile", editedBefore)
	p.edited(twiceSearch)

	t.Log("alice is taken off the list")
	all := operator("bob", "view", bobToken) + operator("carol", "rule", carolToken)
	s.write("operators", all)
	p.wait("the session ends", func() bool {
		p.js(`[...document.querySelectorAll("button")].find((e) => e.textContent === "Try")?.click(); 0`, nil)
		return strings.Contains(p.text("main"), "Your session has ended. Sign in again.")
	})
	p.run(chromedp.SendKeys("input[name=token]", carolToken))
	p.press("Sign in")
	p.until("#who", "carol")
	p.edited(storyRules)
	p.press("Sign out")
	p.until("main", "Your token")

	t.Log("and comes back")
	s.write("operators", all+operator("alice", "rule", aliceToken))
	p.wait("alice can sign in", func() bool {
		p.js(`(() => { const f = document.querySelector(".signin form"); if (f && !f.ariaBusy) { f.elements.token.value = "`+aliceToken+`"; f.requestSubmit(); } })(); 0`, nil)
		return strings.Contains(p.text("#who"), "alice")
	})
	p.until("#meanwhile", editedBefore)
	p.edited(twiceSearch)
	if s.rulesHash() == "" {
		t.Error("there are no rules")
	}
}
