package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
)

// keysVerbs are the words for what the command can do.
var keysVerbs = []string{"top", "get", "reset", "refund"}

var keysCommand = command{
	name:    "keys",
	summary: "Find who is limited on a running server; look up, reset or refund counters.",
	help: `
Usage: tidegate keys top    [FLAGS]
       tidegate keys get    [FLAGS] --as NAME=VALUE [[METHOD] URL]
       tidegate keys reset  [FLAGS] --as NAME=VALUE [[METHOD] URL]
       tidegate keys refund [FLAGS] --as NAME=VALUE --events N [[METHOD] URL]

top lists who is refused most, who asks most and who is nearest to a limit, in the last
1 and 10 minutes, over all instances of the fleet. Counts are exact, or have bounds.

get shows what a caller has left under the rules that count it, and for how long it
is refused. It charges nothing. What one instance counts by itself while the store is
away is marked local, what the store cannot say is marked unknown. reset empties the
caller's counters and ends a block; if nothing was counted, it says so and exits 1.
refund gives back so many events, and never more than were used; with --preview, it and
reset only show what they would do. Bans and overrides of the caller are shown, too.
With a request, only the rules that apply to it are used; without one, all rules that
count by the identities named. Counters that all callers share are shown and reset
only with --rule.

The server is the admin listener of tidegate serve: --server, or TIDEGATE_SERVER.
Its token, if it has one, is in --token-file, in the file that TIDEGATE_TOKEN_FILE
names, or in TIDEGATE_TOKEN.

Examples:
  tidegate keys top --by refused --minutes 10
  tidegate keys top --search acme
  tidegate keys get --as user=42
  tidegate keys get --as user=42 POST /posts
  tidegate keys reset --as ip=203.0.113.9 --rule login
  tidegate keys refund --as user=42 --rule api --events 50 --reason "our outage"
  tidegate keys get --rule site --json`,
	takes: takes{words: keysVerbs, values: map[string][]string{"by": {"refused", "would_refuse", "requests", "nearest"}, "minutes": {"1", "10"}}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		who := newDraft("")
		o := keysOptions{question: admin.Question{As: who.As}}
		o.remote.flags(flags)
		flags.Func("as", "`NAME=VALUE` of an identity; may be repeated", who.addIdentity)
		flags.StringVar(&o.question.Rule, "rule", "", "only the counters of this `RULE`")
		flags.Int64Var(&o.change.Events, "events", 0, "`NUMBER` of events that refund gives back")
		flags.StringVar(&o.change.Reason, "reason", "", "`TEXT` why, for other operators, with reset and refund")
		flags.BoolVar(&o.change.Preview, "preview", false, "show what reset or refund would do, and do nothing")
		flags.StringVar(&o.top.by, "by", "", "only the lists of top by `WHAT`: refused, would_refuse, requests or nearest")
		flags.IntVar(&o.top.minutes, "minutes", 0, "only the lists of top of the last `MINUTES`, 1 or 10")
		flags.IntVar(&o.top.n, "n", 0, "`NUMBER` of entries in each list of top, 10 if not set")
		flags.StringVar(&o.top.search, "search", "", "only entries of top with `TEXT` in them")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

type keysOptions struct {
	remote   remote
	question admin.Question
	change   admin.Change
	top      topQuery
	json     bool
}

func (o *keysOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) == 0 || !slices.Contains(keysVerbs, args[0]) {
		return misused(env, "keys", "say what to do: tidegate keys top, get, reset or refund")
	}
	verb := args[0]
	if verb == "top" {
		return o.runTop(ctx, env, args[1:])
	}
	switch args = args[1:]; len(args) {
	case 0:
	case 1:
		o.question.URL = args[0]
	case 2:
		o.question.Method, o.question.URL = args[0], args[1]
	default:
		return misused(env, "keys", "the request is METHOD and URL, but there is also %q", args[2])
	}
	if o.question.Rule == "" && len(o.question.As) == 0 {
		return misused(env, "keys", "say whose counters: --as user=42, or --rule NAME for what all share")
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "keys", "%v", err)
	}
	if verb == "refund" && o.change.Events < 1 {
		return misused(env, "keys", "say how many events to give back: --events 50")
	}
	var keys admin.Keys
	var err error
	if verb == "get" {
		err = o.remote.get(ctx, "/keys", o.question.Query(), &keys)
	} else {
		o.change.Question = o.question
		err = o.remote.post(ctx, "/keys/"+verb, o.change, &keys)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate keys:", err)
		return exitFound
	}
	return o.print(&env, verb, keys)
}

// print shows the counters, and returns the exit code: exitFound if there are none, if one is
// unknown, or if nothing was reset or refunded.
func (o *keysOptions) print(env *Env, verb string, keys admin.Keys) int {
	code := exitOK
	if len(keys.Counters) == 0 && (verb != "get" || len(keys.Measures) == 0) {
		code = exitFound
	}
	for _, u := range keys.Unnamed {
		hint := "which changes nothing"
		if u.Near != "" {
			hint = fmt.Sprintf("did you mean %q?", u.Near)
		}
		fmt.Fprintf(env.Stderr, "tidegate keys: the rules have no identity %q; %s\n", u.Name, hint)
	}
	used := 0
	for _, c := range keys.Counters {
		if c.WasUsed {
			used++
		}
		if c.Unknown != "" {
			code = exitFound
		}
	}
	if verb == "reset" && used == 0 {
		code = exitFound
	}
	refunded := int64(0)
	for _, c := range keys.Counters {
		refunded += c.Refunded
	}
	if verb == "refund" && refunded == 0 {
		code = exitFound
	}
	done := verb
	if keys.Preview {
		done = "would " + verb
	}
	if o.json {
		return max(code, printJSON(*env, keys))
	}
	for i := range keys.Measures {
		fmt.Fprintln(env.Stdout, strings.Map(graphic, keys.Measures[i].String()))
	}
	switch {
	case len(keys.Counters) == 0 && len(keys.Measures) > 0 && verb == "get":
		return code
	case len(keys.Counters) == 0 && len(keys.Measures) > 0:
		fmt.Fprintf(env.Stderr, "tidegate keys: nothing is counted for them, so there is nothing to %s\n", verb)
		return code
	case len(keys.Counters) == 0:
		fmt.Fprintln(env.Stderr, "tidegate keys: no rule counts by that; tidegate explain says what a request is counted by")
		return code
	case verb == "reset" && used == 0:
		fmt.Fprintf(env.Stderr, "tidegate keys: nobody was reset: nothing is counted for %s\n", whose(keys.Counters))
		return code
	case verb == "reset" && used < len(keys.Counters):
		fmt.Fprintf(env.Stdout, "%s %d of %s:\n", done, used, plural(len(keys.Counters), "counter"))
	case verb == "reset":
		fmt.Fprintf(env.Stdout, "%s %s:\n", done, plural(used, "counter"))
	case verb == "refund" && refunded == 0:
		fmt.Fprintf(env.Stderr, "tidegate keys: nothing was given back: nothing that can be is counted for %s\n", whose(keys.Counters))
		return code
	case verb == "refund":
		fmt.Fprintf(env.Stdout, "%s %s:\n", done, plural(int(refunded), "event"))
	}
	printCounters(env, keys.Counters)
	return code
}

// whose names the subjects of counters, each once.
func whose(counters []admin.Counter) string {
	var all []string
	for i := range counters {
		if text := subjectText(counters[i].Subject); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

func printCounters(env *Env, counters []admin.Counter) {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tCOUNTED\tLIMIT\tLEFT\tNOW")
	local, unknown := false, ""
	for i := range counters {
		c := &counters[i]
		left, now := fmt.Sprintf("%d of %d", c.Remaining, c.Capacity), nowText(c)+localText(c)
		if c.Unknown != "" {
			left, now, unknown = "?", "unknown", c.Unknown
		}
		local = local || c.Local
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", orDash(c.Rule), subjectText(c.Subject), unquoted(limitText(c)), left, now)
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	if local {
		fmt.Fprintln(env.Stderr, "tidegate keys: the store does not answer: what is marked local was counted by this instance alone, which admits its share of the limit meanwhile")
	}
	if unknown != "" {
		fmt.Fprintf(env.Stderr, "tidegate keys: the store cannot say what is marked unknown: %s; the on_store_failure of these rules decides meanwhile\n", unknown)
	}
}

func limitText(c *admin.Counter) string {
	if c.Role == "decides" {
		return c.Limit
	}
	return c.Limit + " (" + c.Role + ")"
}

func localText(c *admin.Counter) string {
	if c.Local {
		return " (local)"
	}
	return ""
}

// nowText returns what would become of one more request.
func nowText(c *admin.Counter) string {
	again := ""
	if after := time.Duration(c.RetryAfter * float64(time.Second)); after > 0 {
		again = " for " + max(after.Round(time.Second), time.Second).String()
	}
	switch {
	case c.OK:
		return "passes"
	case c.Role == "blocks":
		return "blocked" + again
	case c.Role == "marks":
		return "marked" + again
	case c.Role == "tries":
		return "would be refused" + again
	}
	return "refused" + again
}
