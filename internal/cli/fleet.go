package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/serve"
)

var fleetCommand = command{
	name:    "fleet",
	summary: "List the instances that share their limits through Redis, and what is wrong with them.",
	help: `
Usage: tidegate fleet [FLAGS]
       tidegate fleet --redis URL [FLAGS]

Shows each instance as its last heartbeat described it, a few seconds ago at most: its
name, version, the revision of its rules (how the hash in /rules begins), for how long
it has been running, how far its clock is ahead (+) or behind (-) Redis', its circuit,
its backlog (counters that it still has to charge for what it admitted without Redis),
what it has leased, the age of the counts that others have from it (eventual limits),
and its share of a limit where it decides alone. Instances of a version that tells
nothing about itself are marked unknown. Other regions are listed with the age of their
counts. Warnings follow: clocks that differ by more than 100 ms, rules that differ,
circuits that are not ok, regions that are cut off.

It asks an instance: the admin listener of tidegate serve at --server, or
TIDEGATE_SERVER. Its token, if it has one, is in --token-file, in the file that
TIDEGATE_TOKEN_FILE names, or in TIDEGATE_TOKEN. With --redis it asks Redis itself,
which also works for a fleet of programs that use package fleet.

Exits with 0 if there are instances, warnings or not; with --check, with 1 if there are
warnings.

Examples:
  tidegate fleet
  tidegate fleet --watch
  tidegate fleet --redis redis://127.0.0.1:6379 --check
  tidegate fleet --redis redis-cluster://a,b,c --password-file redis.password --json`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		o := fleetOptions{}
		o.remote.flags(flags)
		flags.StringVar(&o.redis, "redis", "", "`URL` of Redis, as in store.redis of tidegate serve, to ask instead of a server")
		flags.StringVar(&o.passwordFile, "password-file", "", "`FILE` with the password of Redis, unless the URL has one")
		flags.BoolVar(&o.check, "check", false, "exit with 1 if there are warnings")
		flags.BoolVar(&o.json, "json", false, "print JSON; with --watch, an object per line")
		flags.BoolVar(&o.watch, "watch", false, "ask again every 2 seconds until interrupted")
		return o.run
	},
}

type fleetOptions struct {
	remote              remote
	redis, passwordFile string
	check, json, watch  bool
}

// fleetEvery is how often a watching command asks.
const fleetEvery = 2 * time.Second

func (o *fleetOptions) run(ctx context.Context, env Env, args []string) int {
	if len(args) > 0 {
		return misused(env, "fleet", "it takes no arguments, but got %q", args[0])
	}
	ask, end, err := o.source(env)
	if err != nil {
		return misused(env, "fleet", "%v", err)
	}
	defer end()
	return watching(ctx, &env, o.watch, o.json, ask, o.show)
}

// watching shows an answer, and if watch is set another one every two seconds until ctx ends. It
// returns the exit code of the last.
func watching[T any](ctx context.Context, env *Env, watch, asJSON bool, ask func(context.Context) (T, error), show func(*Env, *T, error) int) (code int) {
	for first := true; ; first = false {
		is, err := ask(ctx)
		if ctx.Err() != nil && !first { // the last answer may have been cut short
			return code
		}
		if watch && !asJSON {
			separate(env, first)
		}
		if code = show(env, &is, err); !watch {
			return code
		}
		select {
		case <-ctx.Done():
			return code
		case <-time.After(fleetEvery):
		}
	}
}

// separate begins another table: on a terminal, in place of the one before.
func separate(env *Env, first bool) {
	switch {
	case env.Color:
		fmt.Fprint(env.Stdout, clearScreen)
	case !first:
		fmt.Fprintln(env.Stdout)
	}
	fmt.Fprintln(env.Stdout, env.paint(dim, time.Now().Format(time.TimeOnly)))
}

// clearScreen moves to the first line and clears what is below.
const clearScreen = "\x1b[H\x1b[2J"

// source returns a function that asks for the instances, and one to call at the end.
func (o *fleetOptions) source(env Env) (ask func(context.Context) (admin.Fleet, error), end func(), err error) {
	if o.redis == "" {
		if o.passwordFile != "" {
			return nil, nil, errors.New("--password-file is for --redis, which is missing")
		}
		if err := o.remote.find(env); err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (is admin.Fleet, err error) {
			err = o.remote.get(ctx, "/fleet", nil, &is)
			return is, err
		}, func() {}, nil
	}
	if o.remote.server != "" {
		return nil, nil, errors.New("--server and --redis are two ways to ask: use one")
	}
	store, err := fleet.Open(o.redis, fleet.Options{PasswordFile: o.passwordFile, JoinLater: true})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (admin.Fleet, error) { return serve.ListFleet(ctx, store) }, func() { _ = store.Close() }, nil
}

// show prints an answer.
func (o *fleetOptions) show(env *Env, is *admin.Fleet, err error) int {
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate fleet:", err)
		return exitFound
	}
	code := exitOK
	if o.check && len(is.Warnings) > 0 || len(is.Instances) == 0 {
		code = exitFound
	}
	switch {
	case o.json && o.watch:
		if err := json.NewEncoder(env.Stdout).Encode(is); err != nil {
			fmt.Fprintln(env.Stderr, "tidegate fleet:", err)
			return exitFound
		}
	case o.json:
		return max(code, printJSON(*env, is))
	case len(is.Instances) == 0:
		fmt.Fprintln(env.Stderr, "tidegate fleet: no instance is registered there: is it the Redis of the fleet, and is the prefix the same?")
	default:
		printFleet(env, is)
	}
	return code
}
