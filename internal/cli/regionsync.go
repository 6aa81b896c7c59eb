package cli

import (
	"context"
	"flag"
	"fmt"
	"log/slog"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/config"
)

var regionSyncCommand = command{
	name:    "region-sync",
	summary: "Send what is counted in this region to the Redis of the others, without serving anything.",
	help: `
Usage: tidegate region-sync [-c tidegate.yaml] [FLAGS]

Takes the flags, environment and file of tidegate serve, of which only those of the store
matter, and tells every region of store.regions that has a URL what instances have counted
in this one, until it is interrupted. tidegate serve does that itself where it knows the
URLs; this is for instances that do not reach other regions, or programs that use package
fleet. Of several that run, one at a time works, and the next one goes on where it ended.
Each region needs its own. docs/consistency.md explains regions.

Examples:
  tidegate region-sync -c /etc/tidegate/tidegate.yaml
  tidegate region-sync --store.redis redis://10.0.0.1 --store.region eu --store.regions us=redis://10.1.0.1`,
	setup: func(flags *flag.FlagSet) func(context.Context, Env, []string) int {
		given := config.Flags(flags)
		return func(ctx context.Context, env Env, args []string) int {
			if len(args) > 0 {
				return misused(env, "region-sync", "it takes no arguments, but got %q; the file is named by -c", args[0])
			}
			c, problems := config.Load(config.Options{Flags: given, OwnRules: true})
			problems.Write(env.Stderr, false)
			if c == nil {
				return exitUsage
			}
			return syncRegions(ctx, env, c.Store.Redis)
		}
	},
}

// syncRegions sends what is counted in this region to the others until ctx ends.
func syncRegions(ctx context.Context, env Env, c config.Redis) int {
	log := slog.New(slog.NewJSONHandler(env.Stderr, nil))
	o := fleet.Options{
		Region: c.Region, Username: c.Username, PasswordFile: c.PasswordFile, JoinLater: true,
		OnRegion: func(r fleet.RegionTrouble) {
			switch {
			case r.TooLarge > 0:
				log.Warn("a region is not told of counters with too many windows and instances: it has the whole limit of those", "region", r.Region, "counters", r.TooLarge)
			case r.Why != nil:
				log.Warn("a region cannot be told what is counted here; it is tried again", "region", r.Region, "err", r.Why)
			default:
				log.Info("a region is told again what is counted here", "region", r.Region)
			}
		},
	}
	var told []string
	for _, r := range c.Regions {
		o.Regions = append(o.Regions, fleet.Region(r))
		if r.URL != "" {
			told = append(told, r.Name)
		}
	}
	if len(told) == 0 {
		return misused(env, "region-sync", "there is no region to send to: store.regions names none with a URL")
	}
	store, err := fleet.Open(c.URL, o)
	if err != nil {
		fmt.Fprintln(env.Stderr, "tidegate region-sync:", err)
		return exitFound
	}
	defer store.Close()
	log.Info("other regions are told what is counted here", "region", c.Region, "others", told)
	<-ctx.Done()
	return exitOK
}
