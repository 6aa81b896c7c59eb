package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
)

var auditCommand = command{
	name:    "audit",
	summary: "Show who did what, when and why.",
	help: `
Usage: tidegate audit [FLAGS]

Shows what operators did on any instance of the fleet and what was refused to them, and
changes of the rule files, the newest first.
` + serverHelp + `
Examples:
  tidegate audit
  tidegate audit --who alice --n 20
  tidegate audit --action ban --json`,
	takes: takes{values: map[string][]string{"result": admin.Results}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := auditOptions{n: 30}
		o.remote.flags(flags)
		flags.IntVar(&o.n, "n", o.n, "`NUMBER` of entries")
		flags.StringVar(&o.who, "who", "", "only what this operator `NAME` did")
		flags.StringVar(&o.action, "action", "", "only this `ACTION`: ban, override, end, reset, refund, rules, …")
		flags.StringVar(&o.result, "result", "", "only with this `RESULT`: done, failed or refused")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

type auditOptions struct {
	remote              remote
	n                   int
	who, action, result string
	json                bool
}

func (o *auditOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "audit", "it takes no arguments, but got %q", args[0])
	}
	if o.result != "" && !slices.Contains(admin.Results, o.result) {
		return misused(env, "audit", "--result cannot be %q: it is done, failed or refused", o.result)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "audit", "%v", err)
	}
	query := url.Values{"n": {strconv.Itoa(o.n)}}
	for name, value := range map[string]string{"who": o.who, "action": o.action, "result": o.result} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var page admin.AuditPage
	if err := o.remote.get(ctx, "/audit", query, &page); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate audit:", err)
		return exitFound
	}
	if o.json {
		return printJSON(env, page)
	}
	o.print(&env, &page)
	return exitOK
}

func (o *auditOptions) print(env *Env, page *admin.AuditPage) {
	switch {
	case len(page.Entries) > 0:
		w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "WHEN\tWHO\tACTION\tRESULT\tWHAT\tWHY\tWHERE")
		for i := range page.Entries {
			e := &page.Entries[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), orDash(e.Who), orDash(e.Action), resultText(env, e), whatText(e), orDash(e.Reason), orDash(e.Node))
		}
		_ = w.Flush() // errors of standard output are ignored
	case o.who+o.action+o.result != "":
		fmt.Fprintln(env.Stdout, "no such entry is in the audit log")
	default:
		fmt.Fprintln(env.Stdout, "the audit log is empty")
	}
	if page.Incomplete != "" {
		fmt.Fprintln(env.Stderr, "tidegate audit:", strings.Map(graphic, page.Incomplete))
	}
}

// resultText returns the result of an entry, in red unless it is done.
func resultText(env *Env, e *auditlog.Entry) string {
	if e.Result == admin.Done {
		return e.Result
	}
	return env.paint(red, orDash(e.Result))
}

// whatText returns what an entry is about, such as "user=42 rule=api", and the error if there is one. It
// leaves out the ID of a measure and where it is in force, which --json prints.
func whatText(e *auditlog.Entry) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.What)) {
		switch v := e.What[name].(type) {
		case map[string]any: // identities
			for _, id := range slices.Sorted(maps.Keys(v)) {
				parts = append(parts, valueText(id)+"="+valueText(fmt.Sprint(v[id])))
			}
		case string:
			if name != "holds" && name != "id" {
				parts = append(parts, valueText(name)+"="+valueText(v))
			}
		default:
			if text, err := json.Marshal(v); err == nil {
				parts = append(parts, valueText(name)+"="+strings.Map(graphic, string(text)))
			}
		}
	}
	if e.Error != "" {
		parts = append(parts, strings.Map(graphic, e.Error))
	}
	return unquoted(strings.Join(parts, " "))
}
