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
	more, draw, again := func() bool { return decisions < o.random }, sim.Random, "--random"
	if o.regions > 0 {
		more, again = func() bool { return runs < o.regions }, "--random-regions"
		draw = func(seed uint64) sim.Scenario { return sim.RandomRegions(seed, sim.MaxNodes) }
	}
	for seed := o.seed; more() && ctx.Err() == nil; seed++ {
		s := draw(seed)
		show.at(fmt.Sprintf("seed %d", seed))
		r := sim.Run(s, sim.VirtualTime, show.add)
		runs++
		decisions += r.Decisions
		if len(r.Violations) > 0 {
			show.end()
			printReports(env, []*sim.Report{r})
			fmt.Fprintf(env.Stdout, "Run it again: tidegate sim %s 1 --seed %d\n", again, seed)
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
