package cli

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/cli/screen"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

var topCommand = command{
	name:    "top",
	summary: "Watch what is decided, who is refused, and which bans and overrides are in force.",
	help: `
Usage: tidegate top [FLAGS]

Shows decisions per second by rule and outcome of the last ten seconds and who was refused
most in the last minute, on all instances of the fleet together, and the bans and overrides
in force. On a terminal it fills the window and is drawn again every two seconds, until q or
Ctrl-C; elsewhere it prints one picture after the other.
` + serverHelp + `
Examples:
  tidegate top
  tidegate top --rule api
  tidegate top --once`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := topOptions{every: 2 * time.Second, query: topQuery{by: string(offenders.Refused), minutes: 1, n: 10}}
		o.remote.flags(flags)
		flags.StringVar(&o.query.rule, "rule", "", "only this `RULE`")
		flags.DurationVar(&o.every, "every", o.every, "`TIME` between two pictures")
		flags.BoolVar(&o.once, "once", false, "print one picture")
		return o.run
	},
}

type topOptions struct {
	remote remote
	query  topQuery
	every  time.Duration
	once   bool
}

func (o *topOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "top", "it takes no arguments, but got %q", args[0])
	}
	if o.every < 100*time.Millisecond {
		return misused(env, "top", "--every is 100ms or more, not %s", o.every)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "top", "%v", err)
	}
	picture, err := o.picture(ctx, &env)
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate top:", err)
		return exitFound
	}
	if o.once {
		fmt.Fprint(env.Stdout, picture)
		return exitOK
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	show, end := pictures(&env, quit)
	defer end()
	for {
		show(picture)
		select {
		case <-ctx.Done():
			return exitOK
		case <-time.After(o.every):
		}
		if picture, err = o.picture(ctx, &env); ctx.Err() != nil {
			return exitOK
		} else if err != nil { // it may be back soon
			picture = fmt.Sprintf("%s\n", env.paint(red, strings.Map(graphic, err.Error())))
		}
	}
}

// pictures returns a function that shows one picture after the other, and one that ends that. On a
// terminal that somebody types on, pictures fill the window, and quit is called when it is to be left.
func pictures(env *Env, quit func()) (show func(picture string), end func()) {
	in, isFile := env.Stdin.(*os.File)
	out, outIsFile := env.Stdout.(*os.File)
	if env.Asks && isFile && outIsFile && env.Getenv("TERM") != "dumb" {
		if s, err := screen.Open(in, out, quit); err == nil {
			return s.Show, func() { _ = s.Close() } // what a terminal that is gone shows does not matter
		}
	}
	first := true
	return func(picture string) {
		switch {
		case env.Color:
			picture = clearScreen + picture
		case !first:
			picture = "\n" + picture
		}
		first = false
		fmt.Fprint(env.Stdout, picture)
	}, func() {}
}

// picture asks for everything first, so that it is drawn at once.
func (o *topOptions) picture(ctx context.Context, env *Env) (string, error) {
	var series admin.Series
	var report offenders.Report
	var orders admin.Measures
	query := url.Values{}
	if o.query.rule != "" {
		query.Set("rule", o.query.rule)
	}
	if err := o.remote.get(ctx, "/series", query, &series); err != nil {
		return "", err
	}
	if err := o.remote.get(ctx, "/offenders", o.query.values(), &report); err != nil {
		return "", err
	}
	if err := o.remote.get(ctx, "/measures", nil, &orders); err != nil {
		return "", err
	}
	var b strings.Builder
	to := *env
	to.Stdout = &b
	fmt.Fprintf(&b, "%s  %s\n\n", env.paint(dim, time.Now().Format(time.TimeOnly)), env.paint(bold, o.remote.at.Host))
	fmt.Fprintln(&b, env.paint(bold, "decided on "+decidedOn(&series)))
	printRates(&to, &series)
	fmt.Fprintf(&b, "\n%s\n", env.paint(bold, "refused most in the last minute"))
	printOffenders(&to, &report)
	fmt.Fprintf(&b, "\n%s\n", env.paint(bold, "bans and overrides"))
	printMeasures(&to, orders.Measures, time.Now())
	return b.String(), nil
}

// decidedOn returns which instances a series is of: "web-1 alone", "3 of 4 instances".
func decidedOn(s *admin.Series) string {
	all := len(s.Nodes) + len(s.Missing)
	switch {
	case all == 1 && len(s.Nodes) == 1:
		return strings.Map(graphic, s.Nodes[0]) + " alone"
	case len(s.Missing) == 0:
		return "all " + plural(all, "instance")
	}
	text := fmt.Sprintf("%d of %s", len(s.Nodes), plural(all, "instance"))
	for _, m := range s.Missing {
		text += "; missing: " + strings.Map(graphic, m)
	}
	return text
}

// rateSteps is how many of the last steps rates are of.
const rateSteps = 10

// printRates prints decisions per second, a line for each rule with its outcomes.
func printRates(env *Env, s *admin.Series) {
	type rule struct {
		name     string
		total    float64
		outcomes []string
	}
	var all []*rule
	for _, l := range s.Lines {
		if l.Rule == admin.AllRequests {
			continue
		}
		last := l.Counts[max(0, len(l.Counts)-rateSteps):]
		sum := uint64(0)
		for _, n := range last {
			sum += uint64(n)
		}
		if sum == 0 || s.Step == 0 {
			continue
		}
		rate := float64(sum) / float64(len(last)*s.Step)
		i := slices.IndexFunc(all, func(r *rule) bool { return r.name == l.Rule })
		if i < 0 {
			i = len(all)
			all = append(all, &rule{name: l.Rule})
		}
		text := fmt.Sprintf("%s %s", orDash(l.Outcome), rateText(rate))
		if l.Outcome == "refused" || l.Outcome == "denied" || l.Outcome == "error" {
			text = env.paint(red, text)
		}
		all[i].total += rate
		all[i].outcomes = append(all[i].outcomes, text)
	}
	if len(all) == 0 {
		fmt.Fprintln(env.Stdout, "nothing was decided in the last ten seconds")
		return
	}
	slices.SortStableFunc(all, func(a, b *rule) int {
		switch {
		case a.total > b.total:
			return -1
		case a.total < b.total:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tPER SECOND\tOUTCOMES")
	for _, r := range all[:min(len(all), 20)] {
		fmt.Fprintf(w, "%s\t%s\t%s\n", orDash(r.name), rateText(r.total), strings.Join(r.outcomes, "  "))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	if more := len(all) - 20; more > 0 {
		fmt.Fprintf(env.Stdout, "and %d more\n", more)
	}
}

func rateText(r float64) string {
	if r >= 10 {
		return fmt.Sprintf("%.0f", r)
	}
	return fmt.Sprintf("%.1f", r)
}
