package rules

import (
	"testing"

	"tidegate.dev/tidegate"
)

// Each tier continues from the limit that it had, and none from that of another, also through further reloads and in a process
// that is started meanwhile. Where the period becomes shorter, whoever has used up a small limit is refused, and whoever has
// not used up a large one has the rest.
func TestPredecessorOfEachTier(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "sliding_log", "sub_windows", "fixed_window", "sliding_window"} {
		for _, small := range []string{"free", "pro"} { // the rule's own limit, or that of a branch
			large := map[string]string{"free": "pro", "pro": "free"}[small]
			with := func(n, m, period string) string {
				limits := map[string]string{small: "{ rate: " + n + "/" + period + ", algorithm: " + algorithm + " }", large: "{ rate: " + m + "/" + period + ", algorithm: " + algorithm + " }"}
				return "identify: { user: client header X-User, plan: client header X-Plan }\nrules:\n" +
					"  - { name: api, per: user, limits: " + limits["free"] + ", for: [{ when: { plan: pro }, limits: " + limits["pro"] + " }] }\n"
			}
			d := newDesk(t, with("10", "100", "hour"))
			d.passes(10, as("GET /", "user", "ann", "plan", small))
			for _, user := range []string{"bob", "cat", "dan"} {
				d.admits(30, as("GET /", "user", user, "plan", large))
			}
			held := func(when, user string) {
				t.Helper()
				if now := d.ask(as("GET /", "user", "ann", "plan", small)); now.OK {
					t.Errorf("%s, %s is small, %s: refilled", algorithm, small, when)
				}
				if now := d.ask(as("GET /", "user", user, "plan", large)); !now.OK {
					t.Errorf("%s, %s is small, %s: 30 of 100 used, and refused by %s", algorithm, small, when, now.Limit)
				}
			}
			d.reload(with("1", "20", "minute"))
			held("after a reload", "bob")
			d.reload("respond: { message: again }\n" + with("2", "21", "minute"))
			held("after another", "cat")
			memory, err := d.live.Remember()
			if err != nil {
				t.Fatal(err)
			}
			d.live = NewLive(parse(t, with("1", "22", "minute"), d.config()))
			if _, err := d.live.Recall(memory); err != nil {
				t.Fatal(err)
			}
			d.gate = tidegate.NewGate(d.live, d.store)
			held("after a restart", "dan")
		}
	}
}
