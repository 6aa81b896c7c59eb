package browser

import (
	"fmt"
	"os"
	"path/filepath"
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

// What is not edited is written as it was, byte by byte, although the field for text knows one kind of line end
// only: a byte order mark, \r\n, \r, tabs, and what cannot be seen.
func TestLineEndsStay(t *testing.T) {
	const odd = "# \U0001F468\u200d\U0001F469\u200d\U0001F467\ta\u2028b\r# old\r\r\n\n"
	was := "\ufeff" + strings.Replace(strings.ReplaceAll(storyRules, "\n", "\r\n"), "identify:", odd+"identify:", 1)
	s := start(t, was)
	p := openAs(t, s, aliceToken)
	p.press("Rules")
	var shown string
	p.wait("there is a text", func() bool {
		p.js(`(document.querySelector("textarea") || {}).value || ""`, &shown)
		return shown != ""
	})
	p.press("Try")
	p.until("main", "This is what is in force.")
	edits := [][2]string{{"limits: 10/10s", "limits: 20/10s"}, {"# Everybody together.", "# Everybody."}}
	for _, e := range edits {
		shown = strings.Replace(shown, e[0], e[1], 1)
		p.fill("textarea", shown)
	}
	p.press("Overview")
	p.until(".verdict", "All well")
	p.press("Rules")
	p.until("#meanwhile", editedBefore)
	p.press("Try")
	p.until("main", "These rules load.")
	p.fill("input[name=reason]", "twice as many searches")
	p.press("Apply")
	p.until("main", "In force: ")
	want := strings.NewReplacer(edits[0][0], edits[0][1], edits[1][0], edits[1][1]).Replace(was)
	if got, err := os.ReadFile(filepath.Join(s.dir, "rules.yaml")); err != nil || string(got) != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}

	f := func(text, shown, want string) {
		t.Helper()
		var got string
		if p.js(fmt.Sprintf("import('/ui/ends.js').then((m) => m.edited(%q, %q))", text, shown), &got); got != want {
			t.Errorf("%q that is shown as %q becomes %q, want %q", text, shown, got, want)
		}
	}
	for _, text := range []string{"", "\n", "\r", "\r\n", "a", "a\r\nb", "a\r\n", "a\rb\n\r\nc", "\r\r\n\n\r"} {
		f(text, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), text)
	}
	f("a\nb", "a\nc", "a\nc")
	f("a\r\nb\r\nc\r\n", "a\nB\nc\n", "a\r\nB\r\nc\r\n")
	f("a\r\nb\nc\rd", "a\nB\nC\nd", "a\r\nB\nC\rd")
	f("a\r\nb", "a\nb\nc", "a\r\nb\r\nc")
	f("a\r\nb", "a", "a")
	f("a\r\nb\r\n", "x\na\nb\n", "x\r\na\r\nb\r\n")
	f("a\r\nb\r\n", "", "")
	f("a\r\n", "$&\n", "$&\r\n")
	f("a\rb\n", "a\n\n", "a\r\r") // \r and \n would be one end
}
