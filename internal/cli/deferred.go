package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
)

var deferredCommand = command{
	name:    "deferred",
	summary: "List, retry, drop or drain requests that rules keep for later.",
	help: `
Usage: tidegate deferred [list] [--rule RULE] [--state STATE] [FLAGS]
       tidegate deferred show ID [FLAGS]
       tidegate deferred retry ID|--rule RULE [--reason TEXT] [FLAGS]
       tidegate deferred drop ID|--rule RULE --reason TEXT [FLAGS]
       tidegate deferred drain [--off] [FLAGS]

list shows what is kept, the oldest first. show shows one request. retry makes requests due
now; a dead letter goes to the end of the line of its key. drop gives requests up: they
become dead letters, and dead letters are deleted. drain stops keeping requests, which are
refused from then on, and returns when all that were kept have been sent; with --off,
requests are kept again.
` + serverHelp + `
Examples:
  tidegate deferred
  tidegate deferred list --state dead --json
  tidegate deferred retry --rule orders --state dead --reason "the upstream is back"
  tidegate deferred drain --reason "this machine is replaced"`,
	takes: takes{words: deferredWords, values: map[string][]string{"state": {"waiting", "trying", "done", "dead"}}},
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := deferredOptions{n: 50}
		o.remote.flags(flags)
		flags.StringVar(&o.change.Rule, "rule", "", "only those of this `RULE`")
		flags.StringVar(&o.change.State, "state", "", "only those in this `STATE`: waiting, trying, done or dead")
		flags.StringVar(&o.change.Reason, "reason", "", "`TEXT` why, for other operators, and of a drop for who sent the requests")
		flags.BoolVar(&o.change.Off, "off", false, "of drain: keep requests again")
		flags.IntVar(&o.n, "n", o.n, "`NUMBER` of requests that are listed")
		flags.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

var deferredWords = []string{"list", "show", "retry", "drop", "drain"}

type deferredOptions struct {
	remote remote
	change admin.DeferredChange
	n      int
	json   bool
}

func (o *deferredOptions) run(ctx context.Context, env Env, args []string) int {
	word := "list"
	if len(args) > 0 {
		word, args = args[0], args[1:]
	}
	if err := o.complete(word, args); err != nil {
		return misused(env, "deferred", "%v", err)
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "deferred", "%v", err)
	}
	var err error
	switch word {
	case "list", "show":
		err = o.list(ctx, env, word)
	case "drain":
		err = o.drain(ctx, env)
	default:
		err = o.do(ctx, env, word)
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate deferred:", err)
		return exitFound
	}
	return exitOK
}

// complete reads the ID, and returns what is wrong with the arguments.
func (o *deferredOptions) complete(word string, args []string) error {
	takesID := word == "show" || word == "retry" || word == "drop"
	switch {
	case word != "list" && word != "drain" && !takesID:
		return fmt.Errorf("there is no %q: it is list, show, retry, drop or drain", word)
	case len(args) > 0 && !takesID:
		return fmt.Errorf("%s takes no arguments, but got %q", word, args[0])
	case len(args) > 1:
		return fmt.Errorf("there are two IDs: %q and %q", args[0], args[1])
	}
	if len(args) == 1 {
		o.change.ID = args[0]
	}
	switch {
	case word == "show" && o.change.ID == "":
		return errors.New("say which: the ID, as tidegate deferred lists it")
	case takesID && o.change.ID == "" && o.change.Rule == "":
		return errors.New("say which: the ID, as tidegate deferred lists it, or all of a rule, with --rule")
	case word == "drop" && o.change.Reason == "":
		return errors.New("say why, with --reason")
	case o.change.Off && word != "drain":
		return errors.New("--off is for drain")
	case word == "drain" && (o.change.Rule != "" || o.change.State != ""):
		return errors.New("drain is about all requests: leave out --rule and --state")
	}
	return nil
}

func (o *deferredOptions) get(ctx context.Context, n int) (list admin.DeferredList, err error) {
	query := url.Values{"n": {strconv.Itoa(n)}}
	for name, value := range map[string]string{"id": o.change.ID, "rule": o.change.Rule, "state": o.change.State} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return list, o.remote.get(ctx, "/deferred", query, &list)
}

func (o *deferredOptions) list(ctx context.Context, env Env, word string) error {
	list, err := o.get(ctx, o.n)
	if err != nil {
		return err
	}
	if o.json {
		printJSON(env, list)
		return nil
	}
	if word == "show" {
		for i := range list.Requests {
			showDeferred(env, &list.Requests[i])
		}
		return nil
	}
	fmt.Fprintf(env.Stdout, "%d wait, %d done, %d dead; %d of %d bytes%s\n", list.Waiting, list.Done, list.Dead, list.Bytes, list.Max, draining(&list))
	if list.Problem != "" {
		fmt.Fprintln(env.Stdout, env.paint(red, "warning:"), strings.Map(graphic, list.Problem))
	}
	if len(list.Requests) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tRULE\tKEY\tREQUEST\tACCEPTED\tTRIES\tWHY")
	for i := range list.Requests {
		r := &list.Requests[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", valueText(r.ID), valueText(r.State), valueText(r.Rule), orDash(r.Key),
			orDash(strings.TrimSpace(r.Method+" "+r.Path)), r.Accepted.Format(time.RFC3339), r.Attempts, orDash(r.Reason))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
	if list.More {
		fmt.Fprintln(env.Stdout, "and more; see --n")
	}
	return nil
}

func draining(list *admin.DeferredList) string {
	if list.Draining {
		return "; no more are kept (drain)"
	}
	return ""
}

func showDeferred(env Env, r *admin.DeferredRequest) {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, strings.Map(graphic, value))
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	row("id", r.ID)
	row("state", r.State)
	row("why", r.Reason)
	row("rule", r.Rule)
	row("counted by", r.Scope)
	row("key", r.Key)
	row("request", strings.TrimSpace(r.Method+" "+r.Host+r.Path))
	row("accepted", at(r.Accepted))
	row("expires", at(r.Expires))
	row("ended", at(r.Ended))
	if r.Position > 0 {
		row("position", strconv.Itoa(r.Position))
	}
	row("tries", strconv.Itoa(r.Attempts))
	row("next try", at(r.Next))
	if r.Status > 0 {
		row("answer", strconv.Itoa(r.Status))
	}
	_ = w.Flush() // what does not reach standard output is not ours to mend
}

func (o *deferredOptions) do(ctx context.Context, env Env, word string) error {
	var changed admin.DeferredChanged
	if err := o.remote.post(ctx, "/deferred/"+word, o.change, &changed); err != nil {
		return err
	}
	if o.json {
		printJSON(env, changed)
		return nil
	}
	verb := map[string]string{"retry": "due now", "drop": "dropped"}[word]
	fmt.Fprintf(env.Stdout, "%d %s\n", changed.Changed, verb)
	return nil
}

// drainLook is how often a drain looks whether all requests were sent.
const drainLook = time.Second

func (o *deferredOptions) drain(ctx context.Context, env Env) error {
	var changed admin.DeferredChanged
	if err := o.remote.post(ctx, "/deferred/drain", o.change, &changed); err != nil {
		return err
	}
	if o.change.Off {
		fmt.Fprintln(env.Stdout, "requests are kept again")
		return nil
	}
	fmt.Fprintln(env.Stdout, "no more requests are kept; waiting until all have been sent")
	for {
		list, err := o.get(ctx, 1)
		if err != nil {
			return err
		}
		if list.Waiting == 0 {
			fmt.Fprintf(env.Stdout, "none waits; %s\n", plural(int(list.Dead), "dead letter"))
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d still wait, and no more are kept; --off keeps requests again", list.Waiting)
		case <-time.After(drainLook):
		}
	}
}
