package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// topQuery says which offenders to list.
type topQuery struct {
	rule, by, search string
	minutes, n       int
}

func (q *topQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"rule": q.rule, "by": q.by, "search": q.search} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, n := range map[string]int{"minutes": q.minutes, "top": q.n} {
		if n != 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return v
}

// runTop runs tidegate keys top.
func (o *keysOptions) runTop(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "keys", "top takes no request, but got %q; use --search", args[0])
	}
	if len(o.question.As) > 0 {
		return misused(env, "keys", "top lists everybody: use --search, or keys get --as")
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "keys", "%v", err)
	}
	o.top.rule = o.question.Rule
	var report offenders.Report
	if err := o.remote.get(ctx, "/offenders", o.top.values(), &report); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate keys:", err)
		return exitFound
	}
	if o.json {
		return printJSON(env, report)
	}
	printOffenders(&env, &report)
	return exitOK
}

// printOffenders prints the lists in one table, and how complete they are.
func printOffenders(env *Env, r *offenders.Report) {
	rows := 0
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tWHO\tWHAT\tHOW OFTEN\tLIMIT")
	for i := range r.Lists {
		l := &r.Lists[i]
		for j := range l.Entries {
			e := &l.Entries[j]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", orDash(l.Rule), offenderText(e), orDash(string(l.By)), oftenText(l, e), unquoted(e.Limit))
			rows++
		}
	}
	if rows == 0 {
		fmt.Fprintln(env.Stdout, "nobody is listed")
	} else {
		_ = w.Flush() // what does not reach standard output is not ours to mend
	}
	fmt.Fprintf(env.Stdout, "%s answered", plural(len(r.Nodes), "instance"))
	for _, m := range r.Missing {
		fmt.Fprintf(env.Stdout, "; missing: %s", strings.Map(graphic, m))
	}
	fmt.Fprintln(env.Stdout)
	if r.LeftOut > 0 {
		fmt.Fprintf(env.Stdout, "%s had no room in the answers: ask about one rule with --rule\n", plural(r.LeftOut, "list"))
	}
}

// offenderText returns who it is, as in user=42. A hashed value is marked with #.
func offenderText(e *offenders.Entry) string {
	var parts []string
	for _, p := range e.Subject {
		value := valueText(p.Value)
		if p.Hashed {
			value = "#" + value
		}
		if p.Value == "" && p.Name == "everyone" {
			parts = append(parts, "everyone")
			continue
		}
		parts = append(parts, valueText(p.Name)+"="+value)
	}
	return strings.Join(parts, " ")
}

// oftenText returns "30 in 1m", or "30 (29 to 31) in 1m" where that is not known exactly. In the list
// of those nearest to their limit, it returns the share of the limit that is used.
func oftenText(l *offenders.List, e *offenders.Entry) string {
	if l.By == offenders.Nearest {
		return fmt.Sprintf("%.0f%% used in %dm", 100*e.Used, l.Minutes)
	}
	if e.AtLeast == e.AtMost {
		return fmt.Sprintf("%d in %dm", e.Count, l.Minutes)
	}
	return fmt.Sprintf("%d (%d to %d) in %dm", e.Count, e.AtLeast, e.AtMost, l.Minutes)
}
