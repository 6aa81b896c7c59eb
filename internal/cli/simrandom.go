package cli

import (
	"context"
	"fmt"
	"time"

	"tidegate.dev/tidegate/internal/chain/sim"
)

// runRandom runs one random scenario after the other. It ends with the first that breaks a
// promise.
func (o *simOptions) runRandom(ctx context.Context, env Env) int {
	show := newSimProgress(env)
	defer show.end()
	var decisions int64
	began, runs := time.Now(), 0
	for seed := o.seed; decisions < o.random && ctx.Err() == nil; seed++ {
		s := sim.Random(seed)
		show.at(fmt.Sprintf("seed %d", seed))
		r := sim.Run(s, sim.VirtualTime, show.add)
		runs++
		decisions += r.Decisions
		if len(r.Violations) > 0 {
			show.end()
			printReports(env, []*sim.Report{r})
			fmt.Fprintf(env.Stdout, "Run it again: tidegate sim --random 1 --seed %d\n", seed)
			return exitFound
		}
	}
	show.end()
	if ctx.Err() != nil {
		fmt.Fprintln(env.Stderr, "tidegate sim: interrupted")
		return exitFound
	}
	fmt.Fprintf(env.Stdout, "sim: %d decisions in %d scenarios, seeds %d to %d, in %s: no promise broken\n",
		decisions, runs, o.seed, o.seed+uint64(runs)-1, time.Since(began).Round(time.Second))
	return exitOK
}
