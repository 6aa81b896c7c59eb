package cli

import (
	"context"
	"errors"
	"flag"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/serve"
)

var serveCommand = command{
	name:    "serve",
	summary: "Run the gateway, a reverse proxy that enforces the rules, and the services that proxies and programs ask.",
	help: `
Usage: tidegate serve [-c tidegate.yaml] [FLAGS]

Without any configuration it listens on this machine only, keeps counters in memory,
and proxies to a small built-in API. Every setting is a flag, an environment variable
(listen.gateway is TIDEGATE_LISTEN_GATEWAY) and a field of the file. Flags take
precedence over variables, variables over the file. tidegate config prints all
settings with their values; docs/gateway.md explains them.

Signals:
  SIGTERM  stop accepting, finish requests in flight, write the counters if they are
           in memory, and exit; a second SIGTERM exits at once
  SIGHUP   reopen the log files; reload rules, lists, certificates,
           tokens and users
  SIGUSR2  start a successor, hand the sockets and counters over to it, and exit;
           no connection is refused

Examples:
  tidegate serve --demo
  tidegate serve --upstreams http://127.0.0.1:9000 --rules rules.yaml
  tidegate serve -c /etc/tidegate/tidegate.yaml`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		var o serve.Options
		flags.BoolVar(&o.Demo, "demo", false, "proxy to the small built-in API, with example rules unless others are set, and print what to try")
		o.Flags = config.Flags(flags)
		return func(ctx context.Context, env Env, args []string) int {
			if len(args) > 0 {
				return misused(env, "serve", "it takes no arguments, but got %q; the file is named by -c", args[0])
			}
			o.Stdout, o.Stderr, o.Getenv, o.Version = env.Stdout, env.Stderr, env.Getenv, release
			return exitOf(serve.Run(ctx, o))
		}
	},
}

// exitOf returns the exit code for the error that ended serve, which has reported it already.
func exitOf(err error) int {
	var mistakes diag.List
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &mistakes):
		return exitUsage
	}
	return exitFound
}
