package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/rules"
)

const orderHelp = `
WHO is an identity of the rules with its value, as in user=42 or ip=203.0.113.9; an
address may be a network. If there are several, a request must have all of them;
everyone means every request. --reason is for other operators and the audit log; clients
are not told. Without --for and --until it holds until it is ended. A second order about
the same WHO replaces the first. It holds on every instance within a second, and survives
restarts; the command says where that is not so yet. With --preview nothing is done: the
command shows what it would change.
` + serverHelp

const serverHelp = `
The server is the admin listener of tidegate serve: --server, or TIDEGATE_SERVER.
Its token, if it has one, is in --token-file, in the file that TIDEGATE_TOKEN_FILE
names, or in TIDEGATE_TOKEN.
`

var banCommand = command{
	name:    "ban",
	summary: "Refuse every request of somebody, on all instances.",
	help: `
Usage: tidegate ban WHO... --reason TEXT [--for TIME] [FLAGS]
` + orderHelp + `
Examples:
  tidegate ban ip=203.0.113.9 --for 1h --reason "credential stuffing"
  tidegate ban ip=203.0.113.0/24 --rule login --for 30m --reason "the same, from next door"
  tidegate ban tenant=acme --preview --reason "unpaid"`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := newOrder("ban")
		o.flags(flags)
		flags.StringVar(&o.order.Rule, "rule", "", "only where this `RULE` applies")
		flags.StringVar(&o.order.Message, "message", "", "`TEXT` that the banned are told")
		return o.run
	},
}

var overrideCommand = command{
	name:    "override",
	summary: "Give somebody other limits under a rule for some time, on all instances.",
	help: `
Usage: tidegate override WHO... --rule RULE --limits LIMITS --reason TEXT [--for TIME] [FLAGS]
` + orderHelp + `
What was used stays used: nobody is refilled by other limits. An override takes
precedence over the for and tier of the rule; exemptions and bans take precedence over it.

Examples:
  tidegate override user=42 --rule api --limits 5000/minute --for 2h --reason "ticket 4711"
  tidegate override tenant=acme --rule api --limits unlimited --until 2026-12-01T00:00:00Z --reason migration`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := newOrder("override")
		o.flags(flags)
		flags.StringVar(&o.order.Rule, "rule", "", "the `RULE` whose limits are overridden")
		flags.Func("limits", "`LIMITS` as a rule file writes them, 5000/minute, or unlimited; may be repeated, or have commas", func(text string) error {
			o.order.Limits = append(o.order.Limits, splitLimits(text)...)
			return nil
		})
		return o.run
	},
}

// splitLimits divides a list at its commas, but for those of a limit in braces.
func splitLimits(text string) (all []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth <= 0:
			all = append(all, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(all, strings.TrimSpace(text[from:]))
}

// everyone is WHO for a measure about all.
const everyone = "everyone"

// orderOptions are those of ban and override.
type orderOptions struct {
	command string
	remote  remote
	order   admin.Order
	who     draft
	until   string
	json    bool
}

func newOrder(kind string) *orderOptions {
	return &orderOptions{command: kind, order: admin.Order{Kind: rules.MeasureKind(kind)}, who: newDraft("")}
}

func (o *orderOptions) flags(flags *flag.FlagSet) {
	o.remote.flags(flags)
	flags.Func("as", "`NAME=VALUE` of an identity, as WHO; may be repeated", o.who.addIdentity)
	flags.StringVar(&o.order.For, "for", "", "`TIME` that it lasts: 30s, 15m, 2h, 7d")
	flags.StringVar(&o.until, "until", "", "`TIME` when it ends, as in 2026-12-01T00:00:00Z")
	flags.StringVar(&o.order.Reason, "reason", "", "`TEXT` why, for other operators")
	flags.BoolVar(&o.order.Preview, "preview", false, "show what it would do, and do nothing")
	flags.BoolVar(&o.json, "json", false, "print JSON")
}

func (o *orderOptions) run(ctx context.Context, env Env, args []string) int {
	if err := o.complete(args); err != nil {
		return misused(env, o.command, "%v", err)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, o.command, "%v", err)
	}
	var effect admin.Effect
	if err := o.remote.post(ctx, "/measures", o.order, &effect); err != nil {
		fmt.Fprintf(env.Stderr, "tidegate %s: %v\n", o.command, err)
		return exitFound
	}
	if o.json {
		return printJSON(env, effect)
	}
	printEffect(&env, &effect)
	return exitOK
}

// complete reads WHO and times.
func (o *orderOptions) complete(args []string) error {
	for _, arg := range args {
		if arg == everyone {
			o.who.As[everyone] = ""
		} else if err := o.who.addIdentity(arg); err != nil {
			return fmt.Errorf("%q does not say who: %w", arg, err)
		}
	}
	o.order.As = o.who.As
	switch {
	case len(o.order.As) == 0:
		return errors.New("say who: tidegate " + o.command + " user=42")
	case strings.TrimSpace(o.order.Reason) == "":
		return errors.New("say why, for whoever looks at this later: --reason TEXT")
	case o.command == "override" && o.order.Rule == "":
		return errors.New("say whose limits: --rule RULE")
	case o.command == "override" && len(o.order.Limits) == 0:
		return errors.New("say which limits: --limits 5000/minute, or --limits unlimited")
	case o.until != "":
		until, err := time.Parse(time.RFC3339, o.until)
		if err != nil {
			return fmt.Errorf("--until is a time such as %s, not %q", "2026-12-01T00:00:00Z", o.until)
		}
		o.order.Until = until
	}
	return nil
}

// printEffect tells what was ordered, what it changes and where it holds.
func printEffect(env *Env, e *admin.Effect) {
	verb := ""
	if e.Preview {
		verb = "would order: "
	}
	fmt.Fprintln(env.Stdout, verb+strings.Map(graphic, e.Measure.String()))
	if e.Replaces != nil {
		fmt.Fprintln(env.Stdout, "in place of: "+strings.Map(graphic, e.Replaces.String()))
	}
	if e.Holds != "" {
		fmt.Fprintln(env.Stdout, strings.Map(graphic, e.Holds))
	}
	if len(e.Counters) > 0 && (e.Preview || len(e.Then) > 0) {
		if len(e.Then) > 0 {
			fmt.Fprintln(env.Stdout, "\nbefore:")
		} else {
			fmt.Fprintln(env.Stdout, "\nthey stand at:")
		}
		printCounters(env, e.Counters)
	}
	if len(e.Then) > 0 {
		fmt.Fprintln(env.Stdout, "\nthen:")
		printCounters(env, e.Then)
	}
}
