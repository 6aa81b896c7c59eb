package browser

import (
	"regexp"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Of two nodes on one Redis each shows both, with their rules and the decisions of both; Redis that
// is killed is told of in the first line, and that it is back.
func TestFleet(t *testing.T) {
	redis := testdep.Redis(t)
	a, b := startTwo(t, redis.Addr)
	p := openAs(t, a, aliceToken)

	t.Log("both nodes, with their rules")
	p.until("main", "2 of 2 nodes answered")
	p.until(".verdict", "All well")
	p.until("main", "web-1 (this)")
	p.until("main", "web-2")
	hash := a.rulesHash()[:12]
	p.wait("both have the same rules", func() bool {
		var n int
		p.js(`[...document.querySelectorAll("td .mono")].filter((e) => e.innerText === "`+hash+`").length`, &n)
		return n == 2
	})
	p.accessible("a fleet")

	t.Log("decisions of the other node")
	for range 3 {
		b.send("ann", "/search")
	}
	p.wait("what the other one admits is counted", func() bool { return p.text("#admitted") == "3" })
	p.wait("somebody is refused by both together", func() bool {
		a.send("bert", "/search")
		_, slip := b.send("bert", "/search")
		return slip != ""
	})
	p.press("Offenders")
	p.until("main table", "user=bert")
	p.until("main", "2 nodes answered")

	t.Log("Redis is killed")
	p.press("Overview")
	redis.Kill()
	p.wait("both ask, and notice", func() bool {
		a.send("ann", "/search")
		b.send("ann", "/search")
		return regexp.MustCompile(`Redis .*deciding locally on `).MatchString(p.text(".verdict"))
	})
	p.wait("the verdict says for how long", func() bool { return regexp.MustCompile(` for \d+ (s|min)`).MatchString(p.text(".verdict")) })
	p.accessible("Redis is away")

	t.Log("Redis is back")
	redis.Start()
	p.wait("all is well again", func() bool {
		a.send("ann", "/search")
		b.send("ann", "/search")
		return p.text(".verdict h1") == "All well"
	})
	p.until("main", "2 of 2 nodes answered")
	p.checkPeace(a)
}
