package cli

import (
	"context"
	"flag"
	"fmt"

	"tidegate.dev/tidegate/internal/config"
)

var configCommand = command{
	name:    "config",
	summary: "Print the configuration that serve would run with, and where each value comes from.",
	help: `
Usage: tidegate config [FLAGS]

Takes the flags, environment and file of tidegate serve, checks them in the same
way, and prints the settings in force as a configuration file, with the origin of
each value beside it. Nothing is started.

Examples:
  tidegate config
  tidegate config -c /etc/tidegate/tidegate.yaml
  TIDEGATE_DRAIN=1m tidegate config --json`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		asJSON := flags.Bool("json", false, "print JSON")
		given := config.Flags(flags)
		return func(_ context.Context, env Env, args []string) int {
			if len(args) > 0 {
				return misused(env, "config", "it takes no arguments, but got %q; the file is named by -c", args[0])
			}
			c, problems := config.Load(config.Options{Flags: given})
			problems.Write(env.Stderr, false)
			switch {
			case c == nil:
				return exitUsage
			case *asJSON:
				return printJSON(env, c.Settings())
			}
			if err := c.Write(env.Stdout); err != nil {
				fmt.Fprintln(env.Stderr, "tidegate config:", err)
				return exitFound
			}
			return exitOK
		}
	},
}
