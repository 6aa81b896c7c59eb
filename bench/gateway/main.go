// Command gateway measures tidegate serve beside nginx and beside Caddy with its
// rate-limit module: the same upstream behind all of them, the same load, one run,
// one machine. It prints a table and one last line that a script can read.
//
// Load generator, proxies and upstream share the cores, as they are the same for
// all. The contestants take turns in rounds, so that a noisy neighbour hits all
// alike, and a ratio is the median of the ratios within each round. Everything
// listens on loopback and ends with this program.
package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run, in which Caddy may have to be compiled.
const mostTime = 40 * time.Minute

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-gateway", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := rig.NewFlags("gateway", 5, 5*time.Second, time.Second)
	binary := flags.Binary()
	child := flags.String("child", "", "used by this program when it runs itself: where the upstream listens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *child != "" {
		return serveUpstream(ctx, *child)
	}

	start := time.Now()
	if err := rig.RaiseFiles(); err != nil {
		return err
	}
	site, err := openSite(ctx, *binary)
	if err != nil {
		return err
	}
	defer site.close()
	cost, err := measureLimit(ctx)
	if err != nil {
		return err
	}
	es, err := site.enter(ctx)
	if err != nil {
		return err
	}
	neighbours, err := process.LookAround(ctx)
	if err != nil {
		return err
	}
	if err := race(ctx, site, es, flags.Rounds, flags.Heat); err != nil {
		return err
	}
	rate, delays, err := halfLoad(ctx, es, flags.Rounds, flags.Heat)
	if err != nil {
		return err
	}
	again, err := measureLimit(ctx) // ten minutes later: a neighbour may have been at the caches before
	if err != nil {
		return err
	}
	cost.add(again)
	s := summarize(es, cost)
	r := report.New(start)
	r.Notes, r.LastLine = append(site.versions, neighbours), s.String()
	r.Tables = []report.Table{raceTable(es, flags.Heat), loadsTable(es), delayTable(es, rate, delays), costTable(es, cost)}
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	if n := wrongAnswers(es); n > 0 {
		return fmt.Errorf("%d requests were not answered as they should be, so that the comparison is void", n)
	}
	return rig.Conclude(out, flags.Check, s, s.missed())
}
