package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/rules"
)

var unbanCommand = command{
	name:    "unban",
	summary: "End a ban before its time, on all instances.",
	help: `
Usage: tidegate unban WHO... [--rule RULE] [--reason TEXT] [FLAGS]
       tidegate unban ID [FLAGS]

WHO is as the ban has it; tidegate measures lists the bans there are, with their IDs.
` + serverHelp + `
Examples:
  tidegate unban ip=203.0.113.9 --reason "was a customer"
  tidegate unban ban-2j1m0a8s`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := endOptions{command: "unban", question: admin.MeasureQuestion{Kind: rules.Ban}}
		o.flags(flags)
		return o.run
	},
}

var measuresCommand = command{
	name:    "measures",
	summary: "List the bans and overrides in force, or end one.",
	help: `
Usage: tidegate measures [FLAGS]
       tidegate measures end ID|WHO... [--rule RULE] [--reason TEXT] [FLAGS]

Shows what operators have ordered: whom it is about, the limits, until when, by whom
and why. One that no longer fits the rules is marked, and does not hold.
` + serverHelp + `
Examples:
  tidegate measures
  tidegate measures --search acme
  tidegate measures end user=42 --rule api --reason "the import is done"`,
	takes: takes{words: []string{"end"}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := measuresOptions{end: endOptions{command: "measures"}}
		o.end.flags(flags)
		flags.StringVar(&o.search, "search", "", "only those that have `TEXT` in them")
		return o.run
	},
}

// endOptions are those of commands that end a measure.
type endOptions struct {
	command  string
	remote   remote
	question admin.MeasureQuestion
	json     bool
}

func (o *endOptions) flags(flags *flag.FlagSet) {
	o.remote.flags(flags)
	flags.StringVar(&o.question.Rule, "rule", "", "the one about this `RULE`")
	flags.StringVar(&o.question.Reason, "reason", "", "`TEXT` why, for other operators")
	flags.BoolVar(&o.question.Preview, "preview", false, "show which it is, and do not end it")
	flags.BoolVar(&o.json, "json", false, "print JSON")
}

func (o *endOptions) run(ctx context.Context, env Env, args []string) int {
	if err := o.complete(args); err != nil {
		return misused(env, o.command, "%v", err)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, o.command, "%v", err)
	}
	var effect admin.Effect
	if err := o.remote.post(ctx, "/measures/end", o.question, &effect); err != nil {
		fmt.Fprintf(env.Stderr, "tidegate %s: %v\n", o.command, err)
		return exitFound
	}
	if o.json {
		return printJSON(env, effect)
	}
	verb := "ended: "
	if effect.Preview {
		verb = "would end: "
	}
	fmt.Fprintln(env.Stdout, verb+strings.Map(graphic, effect.Measure.String()))
	fmt.Fprintln(env.Stdout, strings.Map(graphic, effect.Holds))
	return exitOK
}

func (o *endOptions) complete(args []string) error {
	who := newDraft("")
	for _, arg := range args {
		if arg == everyone {
			who.As[everyone] = ""
			continue
		}
		if !strings.Contains(arg, "=") {
			if o.question.ID != "" {
				return fmt.Errorf("there are two IDs: %q and %q", o.question.ID, arg)
			}
			o.question.ID = arg
			continue
		}
		if err := who.addIdentity(arg); err != nil {
			return err
		}
	}
	o.question.As = who.As
	if o.question.ID == "" && len(who.As) == 0 {
		return errors.New("say which: its ID, or whom it is about, as in user=42")
	}
	return nil
}

type measuresOptions struct {
	end    endOptions
	search string
}

func (o *measuresOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		if args[0] != "end" {
			return misused(env, "measures", "it lists those in force, and takes no argument but end: %q", args[0])
		}
		return o.end.run(ctx, env, args[1:])
	}
	if q := &o.end.question; q.Rule != "" || q.Reason != "" || q.Preview {
		return misused(env, "measures", "--rule, --reason and --preview are for end; to list some, use --search")
	}
	if err := o.end.remote.find(env); err != nil {
		return misused(env, "measures", "%v", err)
	}
	query := url.Values{}
	if o.search != "" {
		query.Set("search", o.search)
	}
	var all admin.Measures
	if err := o.end.remote.get(ctx, "/measures", query, &all); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate measures:", err)
		return exitFound
	}
	if o.end.json {
		return printJSON(env, all)
	}
	printMeasures(&env, all.Measures, time.Now())
	return exitOK
}

func printMeasures(env *Env, all []admin.Ordered, now time.Time) {
	if len(all) == 0 {
		fmt.Fprintln(env.Stdout, "no bans or overrides are in force")
		return
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tWHAT\tWHO\tRULE\tLIMITS\tENDS\tBY\tWHY")
	for i := range all {
		m := &all[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", valueText(m.ID), m.Kind, strings.Map(graphic, m.Who()), orDash(m.Rule),
			orDash(strings.Join(m.Limits, " ")), endsText(m.Until, now), orDash(m.By), orDash(m.Reason))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	for i := range all {
		if all[i].Problem != "" {
			fmt.Fprintf(env.Stdout, "%s %s does not hold: %s\n", env.paint(red, "warning:"), valueText(all[i].ID), strings.Map(graphic, all[i].Problem))
		}
	}
}

func endsText(until, now time.Time) string {
	if until.IsZero() {
		return "when ended"
	}
	left := until.Sub(now).Round(time.Second)
	if left <= 0 {
		return "now"
	}
	return "in " + left.String()
}
