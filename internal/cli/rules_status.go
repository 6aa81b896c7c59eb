package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
)

// runStatus runs tidegate rules status.
func (o *rulesOptions) runStatus(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "rules", "status takes no arguments, but got %q", args[0])
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "rules", "%v", err)
	}
	ask := func(ctx context.Context) (is admin.RulesStatus, err error) {
		err = o.remote.get(ctx, "/rules/status", nil, &is)
		return is, err
	}
	return watching(ctx, &env, o.watch, o.json, ask, o.showStatus)
}

// showStatus prints an answer.
func (o *rulesOptions) showStatus(env *Env, is *admin.RulesStatus, err error) int {
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate rules:", err)
		return exitFound
	}
	code := exitOK
	if o.check && !is.Current {
		code = exitFound
	}
	switch {
	case o.json && o.watch:
		if err := json.NewEncoder(env.Stdout).Encode(is); err != nil {
			fmt.Fprintln(env.Stderr, "tidegate rules:", err)
			return exitFound
		}
	case o.json:
		return max(code, printJSON(*env, is))
	default:
		printRulesStatus(env, is, time.Now())
	}
	return code
}

// printRulesStatus prints a line for each source of each instance, and what is wrong.
func printRulesStatus(env *Env, is *admin.RulesStatus, now time.Time) {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INSTANCE\tRULES\tSTATE\tSOURCE\tREVISION\tSINCE\tANSWERED")
	for i := range is.Instances {
		one := &is.Instances[i]
		layers := one.Layers
		if len(layers) == 0 {
			layers = []admin.Layer{{Since: one.Since}}
		}
		for j := range layers {
			l := &layers[j]
			name, hash, state := ruledName(one), orDash(one.Hash[:min(len(one.Hash), shownHash)]), ruledState(one)
			if j > 0 {
				name, hash, state = "", "", ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, hash, state, orDash(l.Name), cmp.Or(shownRevision(l), "-"), agoText(l.Since, now), agoText(l.Reached, now))
		}
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	for _, l := range is.Layers {
		if by := byText(l.Author, l.Reason); by != "" {
			fmt.Fprintf(env.Stdout, "%s of %s is %s\n", strings.Map(graphic, l.Revision), valueText(l.Name), by)
		}
	}
	for _, warning := range is.Warnings {
		fmt.Fprintf(env.Stdout, "%s %s\n", env.paint(red, "warning:"), strings.Map(graphic, warning))
	}
	for _, r := range is.Refusals {
		revision := ""
		if r.Revision != "" {
			revision = " revision " + strings.Map(graphic, r.Revision) + " of"
		}
		fmt.Fprintf(env.Stdout, "%s%s %s on %s, since %s:\n", env.paint(red, "refused:"), revision, valueText(r.Layer), strings.Map(graphic, strings.Join(r.On, ", ")), agoText(r.Since, now))
		for line := range strings.SplitSeq(strings.TrimRight(r.Message, "\n"), "\n") {
			fmt.Fprintln(env.Stdout, "  "+strings.Map(graphic, line))
		}
	}
}

// shownHash is how much of a hash is shown, as much as tidegate fleet shows.
const shownHash = 16

// ruledName returns the name of an instance as it is shown.
func ruledName(one *admin.InForce) string {
	name := valueText(cmp.Or(one.Name, one.ID, "?"))
	switch {
	case one.Self:
		name += " (asked)"
	case one.Follows:
		name += " (follows)"
	}
	return name
}

func ruledState(one *admin.InForce) string {
	switch {
	case one.Unanswered != "":
		return "unknown"
	case len(one.Behind) > 0:
		return "behind"
	}
	return "current"
}

// shownRevision returns a revision as it is shown: a hash is cut.
func shownRevision(l *admin.Layer) string {
	if len(l.Revision) == 64 && strings.Trim(l.Revision, "0123456789abcdef") == "" {
		return l.Revision[:shownHash]
	}
	return strings.Map(graphic, l.Revision)
}

// byText returns who published rules and why, as in by ann: why. It is "" if neither is known.
func byText(author, reason string) string {
	switch {
	case author == "" && reason == "":
		return ""
	case author == "":
		return "for: " + strings.Map(graphic, reason)
	case reason == "":
		return "by " + strings.Map(graphic, author)
	}
	return "by " + strings.Map(graphic, author) + ": " + strings.Map(graphic, reason)
}

// agoText returns 3m20s ago, or the time itself if t is more than a day ago.
func agoText(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	const day = 24 * time.Hour
	switch ago := now.Sub(t); {
	case ago < time.Second:
		return "now"
	case ago < time.Minute:
		return ago.Truncate(time.Second).String() + " ago"
	case ago < time.Hour:
		return fmt.Sprintf("%dm%ds ago", ago/time.Minute, ago%time.Minute/time.Second)
	case ago < day:
		return fmt.Sprintf("%dh%dm ago", ago/time.Hour, ago%time.Hour/time.Minute)
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
