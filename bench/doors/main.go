// Command doors measures the two front ends that other programs ask, each beside the server
// whose protocol it speaks: CL.THROTTLE over RESP beside INCR of redis-server, and the HTTP
// check beside nginx that answers 200 by itself. The same load generator asks both of a pair,
// in one run on one machine. It prints tables and one last line that a script can read.
//
// Load generator and server share the cores, as they are the same for both. The contestants
// take turns in rounds, so that a noisy neighbour hits all alike, and a ratio is the median
// of the ratios within each round. Tidegate is tidegate serve, built from this tree, with
// every door open. Everything listens on loopback and ends with this program.
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

// mostTime bounds a run.
const mostTime = 40 * time.Minute

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-doors", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := rig.NewFlags("doors", 7, 2*time.Second, time.Second)
	binary, only := flags.Binary(), flags.Only("resp, one depth of it such as resp64, or http")
	if err := flags.Parse(args); err != nil {
		return err
	}

	start := time.Now()
	site, err := openSite(ctx, *binary)
	if err != nil {
		return err
	}
	defer site.close()
	neighbours, err := process.LookAround(ctx)
	if err != nil {
		return err
	}
	es := site.entrants(*only)
	if len(es) == 0 {
		return fmt.Errorf("-only %s: there is no such race", *only)
	}
	if err := race(ctx, es, flags.Rounds, flags.Heat); err != nil {
		return err
	}
	if err := site.probe(ctx); err != nil {
		return fmt.Errorf("after the race: %w", err)
	}
	s := es.summary()
	r := report.New(start)
	r.Notes, r.LastLine = append(site.versions, neighbours), s.String()
	r.Tables = es.tables(flags.Heat)
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	if n := es.wrong(); n > 0 {
		return fmt.Errorf("%d requests were not answered as they should be, so that the comparison is void", n)
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, flags.Check, s, s.missed())
}
