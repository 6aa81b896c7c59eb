package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Random files of rules that have much in common, so that they share patterns,
// values and names: whatever finds them must find what asking each one finds.
func TestRandomRulesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	files := 100
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		files = 15
	}
	for range files {
		src := randomFile(random, pick)
		set := parse(t, src, Config{Signals: signals{"cpu": random.Float64()}})
		for range 60 {
			r := requestOf(pick("GET", "POST", "PUT"), pick("/", "/a", "/a/b", "/a/b/c", "/t/x", "//a/../a/b/"),
				pick("", "header X-User=u"+pick("0", "1", "2", "3", "9", "12"))+" "+pick("", "header X-Role="+pick("gold", "tin", "x-bot"))+" "+
					pick("", "ip="+pick("192.0.2.1", "10.0.0.7", "2001:db8::1"))+" "+pick("", "body.n="+pick("3", "x", "900")))
			r.Host = pick("", "example.com", "Example.com:80", "other.example.com")
			agree(t, set, r)
			agreeOnBranches(t, set, r)
			if t.Failed() {
				t.Fatalf("of %v, by\n%s", r.Values, src)
			}
		}
	}
}

// agreeOnBranches asks one branch after the other, and wants what was looked up.
func agreeOnBranches(t *testing.T, set *Set, r *tidegate.Request) {
	t.Helper()
	st := set.state(r)
	defer st.done()
	st.collect()
	for i := st.resolveAll(); i < len(st.hits); i++ {
		h := &st.hits[i]
		rule := set.entries[h.entry].rule
		if h.status != applies || rule.deny {
			continue
		}
		want := &rule.plans[0]
		for j := range rule.plans[1:] {
			if p := &rule.plans[1+j]; p.conds.holds(st, h) {
				want = p
				break
			}
		}
		if got := rule.plan(st, h); got != want {
			t.Errorf("%s takes the branch %+v, want %+v", rule.name, got.branch, want.branch)
		}
	}
}

func randomFile(random *rand.Rand, pick func(...string) string) string {
	var b strings.Builder
	b.WriteString("identify: { user: header X-User, role: header X-Role, who: [header X-User, client header K], doc: \"path {id}\" }\n")
	b.WriteString("lists: { some: [u1, u2, \"u9*\"], nets: [10.0.0.0/8, \"2001:db8::/32\"] }\n")
	guard := func() string {
		when := pick("user: u"+fmt.Sprint(random.IntN(12)), "user: [u1, u2]", "role: gold", "role: gold, user: u3", "role: \"*-bot\"",
			"user: in some", "ip: in nets", "ip: 192.0.2.0/24", "user: absent", "user: present", "method: POST")
		return pick("", "", "when: { "+when+" }, ", "when: { "+when+" }, ", "unless: { "+when+" }, ")
	}
	crowded := random.IntN(2) == 0
	match := func() string {
		if crowded {
			return "match: /a/, "
		}
		return pick("", "match: /a/, ", "match: [/a/b, /a/], ", "match: POST /a/b, ", "match: \"/t/{id}\", ", "match: example.com/a/, ")
	}
	if random.IntN(2) == 0 {
		b.WriteString("exempt: [{ match: /a/b/c }, { when: { ip: 10.0.0.0/8, role: gold } }]\n")
	}
	b.WriteString("rules:\n")
	n := 1 + random.IntN(30)
	for i := range n {
		fmt.Fprintf(&b, "  - { name: r%d, %s%s", i, match(), guard())
		if random.IntN(8) == 0 {
			b.WriteString("deny: true, " + pick("mode: shadow", "mode: enforce", "mode: disabled") + " }\n")
			continue
		}
		// A rule only replaces those before it: a ring is an error of the file.
		if i > 0 && random.IntN(3) == 0 {
			fmt.Fprintf(&b, "instead_of: r%d, ", random.IntN(i))
		}
		b.WriteString("per: " + pick("ip", "user", "who", "[user, ip]", "[who, method]") + ", ")
		b.WriteString(pick("", "missing: skip, ", "missing: refuse, ", "missing: ip, "))
		b.WriteString(pick("limits: 5/minute, ", "limits: [5/minute, 100/hour], ", "limits: { from: header X-User, per: minute, max: 90, else: 3 }, "))
		b.WriteString(pick("", "over: { soft: 20% }, ", "over: { elastic: { while: cpu < 50%, up_to: 2x } }, "))
		b.WriteString(pick("", "block: 1m, ", "candidate: 7/minute, ", "cost: { reserve: body.n, else: 1, max: 100 }, "))
		if random.IntN(3) == 0 {
			b.WriteString("for: [")
			for j := range random.IntN(14) + 1 {
				fmt.Fprintf(&b, "{ when: { user: u%d }, limits: %d/minute }, ", j%12, 1+j)
			}
			b.WriteString("{ when: { role: gold }, limits: unlimited }], ")
		}
		b.WriteString(pick("mode: enforce", "mode: enforce", "mode: shadow", "mode: disabled", "enforce: 50%") + " }\n")
	}
	return b.String()
}
