package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/rules"
)

// print tells the explanation in words.
func (e *explained) print(env *Env, all bool) {
	fmt.Fprintf(env.Stdout, "%s\n", env.paint(bold, fmt.Sprintf("%s %s%s", e.Method, e.Host, e.Path)))
	for _, path := range e.AlsoReadAs {
		fmt.Fprintf(env.Stdout, "  some servers read the path as %s: rules hold for both\n", path)
	}
	e.printIdentities(env)
	if e.Class != "" {
		fmt.Fprintf(env.Stdout, "\nA request of the class %s.\n", env.paint(bold, e.Class))
	}
	if e.Shed != "" {
		fmt.Fprintf(env.Stdout, "\nShed %s.\n", e.Shed)
	}
	if e.Exempt != "" {
		fmt.Fprintf(env.Stdout, "\nExempt from limits by %s.\n", e.Exempt)
	}
	if e.Ban != nil {
		fmt.Fprintf(env.Stdout, "\n%s by %s.\n", env.paint(red, "Refused"), e.Ban)
	}
	hidden := 0
	for i := range e.Rules {
		r := &e.Rules[i]
		switch {
		case r.Applies:
			printApplied(env, r)
		case all || r.Pattern != "":
			fmt.Fprintf(env.Stdout, "\n%s %s\n    %s\n", r.Name, env.paint(dim, "does not apply ("+r.Place+")"), r.Why)
		default:
			hidden++
		}
	}
	if hidden > 0 {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.paint(dim, plural(hidden, "more rule")+" for other requests: --all shows them"))
	}
	e.Answer.print(env)
	if e.Quota != "" {
		fmt.Fprintf(env.Stdout, "\nQuota service: %s\n", e.Quota)
	}
}

func (e *explained) printIdentities(env *Env) {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, id := range e.Identities {
		value := id.Value
		if id.Missing {
			value = "missing"
		}
		if id.Note != "" {
			value += ": " + id.Note
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", id.Name, value, id.Source)
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
}

func printApplied(env *Env, r *rules.ExplainedRule) {
	head := env.paint(green, "applies")
	if !r.Decides {
		head = "looks on (" + r.Mode + ")"
	}
	fmt.Fprintf(env.Stdout, "\n%s %s %s\n", env.paint(bold, r.Name), head, env.paint(dim, "("+r.Place+")"))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(env.Stdout, "    %-8s %s\n", name, value)
		}
	}
	line("match", r.Pattern)
	line("path", r.ReadAs)
	line("why", r.Why)
	if r.Tier != "" {
		line("tier", r.Tier)
	}
	if r.Row != "" {
		line("row", r.Row)
	}
	if r.Was != "" {
		line("was", r.Was)
	}
	if r.Branch != "" {
		line("for", strings.TrimSuffix(r.Branch+": "+r.Reason, ": "))
	}
	if r.Defer != "" {
		line("defer", "what is refused is "+r.Defer)
	}
	line("shed", r.Shed)
	if r.Override != nil {
		line("override", strings.TrimPrefix(r.Override.String(), "override "))
	}
	line("counts", subjectText(r.Subject))
	line("elastic", r.Elastic)
	if r.Unlimited {
		line("limit", "unlimited")
	}
	for _, c := range r.Checks {
		text := c.Limit
		if c.Cost != 1 {
			text += fmt.Sprintf(", at a cost of %d", c.Cost)
		}
		if c.Estimate {
			text += " until it is settled"
		}
		if c.Leaves > 0 {
			text += fmt.Sprintf(", if %d remain for more important classes", c.Leaves)
		}
		if c.MaxWait != "" {
			text += ", waits up to " + c.MaxWait
		}
		if c.MaxOver != "" {
			text += ", gives way for " + c.MaxOver + " at a time"
		}
		if c.Role != "decides" {
			text += " (" + c.Role + ")"
		}
		if c.Until != nil {
			text += ", of the previous rules, until " + c.Until.UTC().Format(time.RFC3339)
		}
		line("limit", text)
		if c.Shared != "" {
			line("shared", c.Consistency+": "+c.Shared)
		}
	}
}

func (a *answer) print(env *Env) {
	fmt.Fprintf(env.Stdout, "\nThe first such request is answered")
	if a.Status == 200 {
		fmt.Fprintf(env.Stdout, " by the server")
	} else {
		fmt.Fprintf(env.Stdout, " %d by %s", a.Status, a.Rule)
	}
	if len(a.Headers) == 0 && a.Body == "" {
		fmt.Fprintln(env.Stdout, "; no limit applies, so no headers are added")
		return
	}
	fmt.Fprintln(env.Stdout, ", with")
	names := make([]string, 0, len(a.Headers))
	for name := range a.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(env.Stdout, "    %s: %s\n", name, strings.Join(a.Headers[name], ", "))
	}
	if a.Body != "" {
		fmt.Fprintf(env.Stdout, "    %s\n", a.Body)
	}
}
