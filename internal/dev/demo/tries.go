package demo

import (
	"fmt"
	"io"
	"strings"
)

// Place is where the demo can be reached.
type Place struct {
	Gateway, Admin string // URLs
	Program        string // the command tidegate, as it was called
	Rules          string // the rule file; "" when there is none to look at
}

// Try is a line for the reader's shell, and what comes of it.
type Try struct{ About, Line, Want string }

const status = `curl -s -o /dev/null -w '%{http_code} ' `

// Tries are for the example rules, in this order.
func Tries(p Place) []Try {
	tries := []Try{
		{
			"5 requests in 10 s for each client address",
			`for i in 1 2 3 4 5 6 7; do ` + status + `GATEWAY/api/things; done; echo`, "200 200 200 200 200 429 429",
		},
		{"the same once more, with all it says", `curl -s -i GATEWAY/api/things`, "429 with Retry-After, RateLimit, X-RateLimit-* and a problem+json body"},
		{
			"an admin is not limited: our own proxy says who is one, and in this example curl is that proxy",
			`for i in 1 2 3 4 5 6 7; do ` + status + `-H 'X-Role: admin' GATEWAY/api/things; done; echo`, "200 200 200 200 200 200 200",
		},
		{
			"3 wrong passwords in a minute; right ones cost nothing",
			`for p in open open open a b c d open; do ` + status + `-d password=$p GATEWAY/login; done; echo`, "200 200 200 401 401 401 429 429",
		},
		{
			"orders wait in line and leave one a second: of 3 at once, one waits a second, one two",
			`(for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code} after %{time_total} s\n' -X POST GATEWAY/orders & done; wait)`,
			"201 after 0, 1 and 2 s",
		},
	}
	if p.Rules != "" {
		tries = append(tries, Try{
			"which rules a request meets, and why",
			`PROGRAM explain --rules RULES --as role=admin GET /api/things`, `"limit unlimited" under api`,
		})
	}
	tries = append(tries,
		Try{"where a client stands", `PROGRAM keys get --server ADMIN --as ip=127.0.0.1`, "a line for each rule"},
		Try{"what was counted", `curl -s ADMIN/metrics | grep 'outcome="refused",rule="api"'`, `tidegate_decisions_total{outcome="refused",rule="api"} 3`},
	)
	fill := strings.NewReplacer("GATEWAY", p.Gateway, "ADMIN", p.Admin, "PROGRAM", p.Program, "RULES", p.Rules)
	for i := range tries {
		tries[i].Line = fill.Replace(tries[i].Line)
	}
	return tries
}

// Greet prints where the dashboard is.
func Greet(w io.Writer, admin string) { fmt.Fprintf(w, "\nThe dashboard: %s/\n", admin) }

// Invite prints what to try, ready to be pasted into a shell.
func Invite(w io.Writer, p Place) {
	fmt.Fprintf(w, "\nA small API behind Tidegate listens on %s. Try, in another terminal:\n", p.Gateway)
	for _, t := range Tries(p) {
		fmt.Fprintf(w, "\n# %s\n%s\n#   -> %s\n", t.About, t.Line, t.Want)
	}
	if p.Rules != "" {
		fmt.Fprintf(w, "\nEdit %s meanwhile: a change takes effect within a second.", p.Rules)
	}
	fmt.Fprint(w, "\nCtrl-C ends it.\n\n")
}
