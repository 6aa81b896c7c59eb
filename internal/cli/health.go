package cli

import (
	"context"
	"flag"
	"fmt"
	"net/http"
)

var healthCommand = command{
	name:    "health",
	summary: "Ask a running server whether requests may be sent to it.",
	help: `
Usage: tidegate health [--alive] [FLAGS]

Exits with 0 if the server is ready, and with 1 if it is not, or does not answer: for the
health check of a container, whose image has no other program that could ask. --alive asks
only whether the process answers.

The server is the admin listener of tidegate serve: --server, or TIDEGATE_SERVER. It
needs no token for this.

Examples:
  tidegate health
  tidegate health --alive --server http://127.0.0.1:9091`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := healthOptions{remote: remote{also: http.StatusServiceUnavailable}}
		o.remote.flags(flags)
		flags.BoolVar(&o.alive, "alive", false, "ask only whether the process answers, as /healthz does")
		return o.run
	},
}

type healthOptions struct {
	remote remote
	alive  bool
}

// health is what /healthz and /readyz say of a server, as far as a probe is concerned.
type health struct {
	Alive    bool     `json:"alive"`
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
}

func (o *healthOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "health", "it takes no arguments, but got %q", args[0])
	}
	if err := o.remote.find(env); err != nil {
		return misused(env, "health", "%v", err)
	}
	path, good, bad := "/readyz", "ready", "not ready"
	if o.alive {
		path, good, bad = "/healthz", "alive", "not alive"
	}
	var is health
	if err := o.remote.get(ctx, path, nil, &is); err != nil {
		fmt.Fprintln(env.Stderr, "tidegate health:", err)
		return exitFound
	}
	code := exitOK
	if o.alive && is.Alive || !o.alive && is.Ready {
		fmt.Fprintln(env.Stdout, good)
	} else {
		code = exitFound
		fmt.Fprintln(env.Stdout, bad)
	}
	for _, reason := range is.Reasons {
		fmt.Fprintln(env.Stdout, "  "+reason)
	}
	for _, warning := range is.Warnings {
		fmt.Fprintln(env.Stdout, "  warning: "+warning)
	}
	return code
}
