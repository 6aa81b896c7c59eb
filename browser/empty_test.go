package browser

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// visit shows the dashboard of a server to whoever has a token.
func (p *tab) visit(s *server, token string) {
	p.t.Helper()
	p.at = s.admin
	p.run(chromedp.Navigate("about:blank"), network.ClearBrowserCookies())
	p.signIn(token)
}

// offers wants an empty state: a sentence, and the next command after it.
func (p *tab) offers(sentence, command string) {
	p.t.Helper()
	p.wait("there is: "+sentence+" "+command, func() bool {
		var found []string
		p.js(`[...document.querySelectorAll(".empty")].map((e) => e.innerText)`, &found)
		for _, text := range found {
			if strings.Contains(text, sentence) && strings.HasSuffix(strings.TrimSpace(text), command) {
				return true
			}
		}
		return false
	})
}

// Where there is nothing to show, the page says so in a sentence, and what to do next.
func TestEmptyStates(t *testing.T) {
	s := start(t, "")
	p := open(t, s)

	t.Log("no rules")
	p.signIn(aliceToken)
	p.until(".verdict", "There are no rules, so nothing is limited")
	p.offers("There are no rules, so nothing is limited. Write some:", "tidegate init")
	p.press("Rules")
	p.offers("There are no rules", "tidegate init")
	p.goTo("#/key?value=ann")
	p.offers("There are no rules, so nobody is counted. Write some:", "tidegate init")
	p.press("Offenders")
	p.offers("Nobody was refused. Watch it live:", "tidegate top")
	p.accessible("no rules")

	t.Log("no traffic, one node, no Redis, nothing ordered")
	s = start(t, storyRules)
	p.visit(s, aliceToken)
	p.until(".verdict", "All well")
	p.offers("No request was decided in the last 15 minutes. Send one through the gateway:", "curl -i "+s.gateway+"/")
	p.offers("3 rules are in force, and none was asked yet. See what a request would meet:", "tidegate explain GET /")
	p.offers("Counters are in the memory of this process. To share them with other nodes:", "tidegate serve --store.redis redis://HOST:6379")
	p.offers("Nobody is banned, and nobody has other limits. Give somebody more for a while:", "tidegate override user=42 --rule api --limits 100/minute --for 1h --reason why")
	p.until("main", "one node")
	p.accessible("no traffic")
	p.press("Fleet")
	p.offers("To share them:", "tidegate serve --store.redis redis://HOST:6379")
	p.goTo("#/rule?name=search")
	p.offers("The rule has decided nothing in the last 15 minutes. Why not, for a request:", "tidegate explain GET /")
	p.offers("No key has used half of the limit in the last 10 minutes. Where one stands:", "tidegate keys get --as user=42")
	p.press("Why")
	p.offers("A refused client gets a slip", "tidegate why rs1_…")

	t.Log("no refusals yet")
	if status, _ := s.send("ann", "/search"); status == http.StatusTooManyRequests {
		t.Fatal("the first request is refused")
	}
	p.press("Overview")
	p.offers("Nobody was refused in the last 15 minutes. Who is near a limit:", "tidegate keys top --by nearest")
	p.goTo("#/rule?name=search")
	p.until("main", "It has refused nobody here.")
	p.press("Offenders")
	p.offers("Nobody was refused. Watch it live:", "tidegate top")
	p.goTo("#/key?as=user%3Dann")
	p.offers("No override and no ban holds for them.", "tidegate measures --search ann")
	p.accessible("no refusals")

	t.Log("no permission")
	p.visit(s, bobToken)
	p.goTo("#/key?as=user%3Dann")
	p.offers("Your role is view, and to change anything for them needs operate.", "tidegate audit --who bob")
	p.press("Rules")
	p.offers("Your role is view, and to apply other rules needs rule.", "tidegate audit --who bob")
	var buttons []string
	p.js(`[...document.querySelectorAll("main button")].map((e) => e.innerText)`, &buttons)
	for _, name := range buttons {
		if name == "Apply" || name == "Override" || name == "Ban" {
			t.Errorf("somebody who may only look is offered %s", name)
		}
	}
	p.accessible("no permission")

	t.Log("one node on Redis")
	s = start(t, storyRules, "--store.redis=redis://"+testdep.Redis(t).Addr, "--store.instance=web-1")
	p.visit(s, aliceToken)
	p.until("main", "one node")
	p.until("main table", "web-1")
	p.press("Fleet")
	p.until("main table", "web-1")
	p.until("main", "Every node runs the newest rules.")
}
