package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/internal/handover"
	"tidegate.dev/tidegate/internal/logsink"
)

var serveCommand = command{
	name:    "serve",
	summary: "Run the gateway: a reverse proxy that holds requests to the rules.",
	help: `
Usage: tidegate serve [-c tidegate.yaml] [FLAGS]

Without any configuration it listens on this machine alone, keeps counters in
memory, and stands before a small API to try. Every setting is a flag, an
environment variable (listen.gateway is TIDEGATE_LISTEN_GATEWAY) and a field of the
file; a flag wins over a variable, that over the file. tidegate config prints them
with their values. docs/gateway.md tells the rest.

Signals:
  SIGTERM  accept no more, finish requests in hand, write the counters if they are
           in memory, end;
           a second one ends at once
  SIGHUP   open the log files again, and read rules, lists and certificates again
  SIGUSR2  start a successor, hand the sockets and counters over to it, and end;
           no connection is refused

Examples:
  tidegate serve --demo
  tidegate serve --upstreams http://127.0.0.1:9000 --rules rules.yaml
  tidegate serve -c /etc/tidegate/tidegate.yaml`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o serveOptions
		flags.BoolVar(&o.demo, "demo", false, "stand before the small API to try, with example rules unless there are others, and print what to try")
		o.flags = config.Flags(flags)
		return o.run
	},
}

type serveOptions struct {
	demo  bool
	flags *config.FlagValues
}

func (o *serveOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "serve", "it takes no arguments, but got %q; the file is named by -c", args[0])
	}
	collectLess(env)
	upgrade := make(chan os.Signal, 1)
	if len(handover.UpgradeSignals) > 0 { // none would mean all
		signal.Notify(upgrade, handover.UpgradeSignals...)
		defer signal.Stop(upgrade)
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signal.Ignore(syscall.SIGPIPE) // who reads a log may go; the gateway does not
	err := o.serve(ctx, env, upgrade, reload)
	var mistakes diag.List
	switch {
	case err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitOK
	case errors.As(err, &mistakes):
		var text strings.Builder
		mistakes.Write(&text, false)
		lastWords(env, text.String())
		return exitUsage
	}
	lastWords(env, fmt.Sprintln("tidegate serve:", err))
	return exitFound
}

// lastWords says why the process ends, to who listens: the end does not wait for others.
func lastWords(env Env, text string) {
	s := logsink.New(env.Stderr, logsink.Options{})
	_, _ = io.WriteString(s, text)
	s.Close(readerPatience)
}

// garbage is how much a gateway lets lie, in percent of what it holds. Counters are
// outside of the collected memory, so what it holds is little, and the usual 100
// would have it collect all the time.
const garbage = 400

func collectLess(env Env) {
	if env.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// serve returns a diag.List for what is wrong with the files of the operator.
func (o *serveOptions) serve(ctx context.Context, env Env, upgrade, reload <-chan os.Signal) error {
	heir, err := handover.Inherit()
	if err != nil {
		return err
	}
	defer heir.Close()
	c, problems := config.Load(config.Options{Flags: o.flags, OwnRules: o.demo})
	if c == nil {
		return problems
	}
	s := &server{config: c, env: env, heir: heir, demo: o.demo}
	defer s.close()
	if err := s.prepare(problems); err != nil {
		return err
	}
	snapshot, err := heir.Await(ctx)
	if err != nil {
		return err
	}
	s.open(snapshot)
	s.announce()
	following, enough := context.WithCancel(context.Background())
	defer enough()
	go s.reloadWhen(following, reload)
	return handover.Serve(ctx, heir, handover.Options{
		Doors:    s.doors(),
		Snapshot: s.snapshot(),
		File:     s.kept(),
		Drain:    c.Drain,
		Upgrade:  upgrade,
		Stopping: func() {
			s.stopping.Store(true)
			s.gateway.Load().Hurry()
		},
		Resumed: s.resumed,
		Log:     s.log,
	})
}
