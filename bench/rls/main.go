// Command rls measures the rate limit service that Envoy asks (RLS): Tidegate in memory beside a
// gRPC server of the same options that decides nothing, with one descriptor and with twenty, and
// Tidegate on Redis beside envoyproxy/ratelimit on the same Redis. It prints a table and one last
// line that a script can read.
//
// The load generator is a process of its own and shares the cores with the servers, as it is the
// same for all. The contestants take turns in rounds, so that a noisy neighbour hits all alike,
// and a ratio is the median of the ratios within each round. Tidegate is tidegate serve, built
// from this tree; envoyproxy/ratelimit is built from its released module. Everything listens on
// loopback and ends with this program.
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

// mostTime bounds a run, with building everything for the first time.
const mostTime = 30 * time.Minute

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-rls", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == childWord {
		return playChild(ctx, args[1:])
	}
	flags := rig.NewFlags("rls", 11, 2*time.Second, time.Second)
	binary, only := flags.Binary(), flags.Only("memory, memory20 or redis")
	if err := flags.Parse(args); err != nil {
		return err
	}

	start := time.Now()
	site, err := openSite(ctx, *binary, *only)
	if err != nil {
		return err
	}
	defer site.close()
	neighbours, err := process.LookAround(ctx)
	if err != nil {
		return err
	}
	es := site.entrants
	if err := race(ctx, es, flags.Rounds, flags.Heat); err != nil {
		return err
	}
	if err := site.probe(ctx); err != nil {
		return fmt.Errorf("after the race: %w", err)
	}
	s := es.summary()
	r := report.New(start)
	r.Notes, r.LastLine = append(site.versions, neighbours), s.String()
	r.Tables = []report.Table{es.table(flags.Heat)}
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	if n := es.wrong(); n > 0 {
		return fmt.Errorf("%d calls were not answered as they should be, so that the comparison is void", n)
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, flags.Check, s, s.missed())
}
