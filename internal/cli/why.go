package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
)

var whyCommand = command{
	name:    "why",
	summary: "Tell why a client was refused, from the slip that it got.",
	help: `
Usage: tidegate why SLIP [FLAGS]

A refused client gets a slip: the header Refusal-Slip, which is also in the problem+json body.
It says which rule refused whom, when and where, sealed so that clients can neither read nor
forge it. This opens it, and shows the rule as it was then and where the client stands now.
That somebody looked is in the audit log.
` + serverHelp + `
Examples:
  tidegate why rs1_Zm9v…
  tidegate why rs1_Zm9v… --json`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := whyOptions{}
		o.remote.flags(flags)
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

type whyOptions struct {
	remote remote
	json   bool
}

func (o *whyOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) != 1 {
		return misused(env, "why", "it takes one slip, as in tidegate why rs1_Zm9v…")
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "why", "%v", err)
	}
	var w admin.Why
	if err := o.remote.post(ctx, "/why", map[string]string{"slip": args[0]}, &w); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate why:", err)
		return exitFound
	}
	if o.json {
		return printJSON(env, w)
	}
	printWhy(&env, &w)
	return exitOK
}

func printWhy(env *Env, w *admin.Why) {
	fmt.Fprintln(env.Stdout, strings.Map(graphic, w.Text))
	switch {
	case w.Gone != "":
		fmt.Fprintf(env.Stdout, "\n%s\n", strings.Map(graphic, w.Gone))
	case w.Set != nil:
		fmt.Fprintf(env.Stdout, "\nThe rules then were %s\n", setText(w.Set))
	}
	if r := w.Rule; r != nil {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.paint(bold, strings.Map(graphic, r.Place)))
		for line := range strings.Lines(r.Text) {
			fmt.Fprintln(env.Stdout, "  "+strings.Map(graphic, strings.TrimRight(line, "\n")))
		}
		for _, part := range []struct{ name, text string }{{"tier", r.Tier}, {"row", r.Row}, {"branch", r.Branch}} {
			if part.text != "" {
				fmt.Fprintf(env.Stdout, "  %s: %s\n", part.name, strings.Map(graphic, part.text))
			}
		}
		for _, l := range r.Limits {
			fmt.Fprintln(env.Stdout, "  they were held to "+strings.Map(graphic, l))
		}
	}
	for i := range w.Now {
		c := &w.Now[i]
		state := fmt.Sprintf("%d of %d left", c.Remaining, c.Capacity)
		if c.Unknown != "" {
			state = c.Unknown
		}
		fmt.Fprintf(env.Stdout, "\nNow, under %s (%s): %s\n", strings.Map(graphic, c.Rule), strings.Map(graphic, c.Limit), strings.Map(graphic, state))
	}
}

// setText names a set of rules: its revision or hash, since when, and by whom.
func setText(s *admin.PastSet) string {
	text := strings.Map(graphic, s.Hash[:min(len(s.Hash), 16)])
	if s.Revision != "" && !strings.HasPrefix(s.Hash, s.Revision) {
		text = "revision " + strings.Map(graphic, s.Revision) + " (" + text + ")"
	}
	if s.InForce {
		text += ", which are in force"
	}
	if !s.Since.IsZero() {
		text += " since " + s.Since.UTC().Format(time.RFC3339)
	}
	if s.Author != "" {
		text += ", by " + strings.Map(graphic, s.Author)
	}
	if s.Reason != "" {
		text += ": " + strings.Map(graphic, s.Reason)
	}
	return text
}
