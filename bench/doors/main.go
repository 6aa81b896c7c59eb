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
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run.
const mostTime = 20 * time.Minute

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-doors", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("doors", flag.ExitOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	markdown := flags.String("markdown", "", "also write the tables to this `FILE`, with machine and date")
	rounds := flags.Int("rounds", 7, "how many rounds count")
	heat := flags.Duration("heat", 2*time.Second, "how long a contestant is asked in a round")
	binary := flags.String("tidegate", "", "measure this `BINARY` instead of one built from the source")
	only := flags.String("only", "", "run this `RACE` alone: resp or http; there is no last line then")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *heat < time.Second {
		return errors.New("at least one round, and heats of at least a second")
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
	if err := race(ctx, es, *rounds, *heat); err != nil {
		return err
	}
	if err := site.probe(ctx); err != nil {
		return fmt.Errorf("after the race: %w", err)
	}
	s := es.summary()
	r := report.New(start)
	r.Notes, r.LastLine = append(site.versions, neighbours), s.String()
	r.Tables = es.tables(*heat)
	r.WriteText(out)
	if *markdown != "" {
		if err := r.WriteMarkdownFile(*markdown); err != nil {
			return err
		}
	}
	if n := es.wrong(); n > 0 {
		return fmt.Errorf("%d requests were not answered as they should be, so that the comparison is void", n)
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, *check, s, s.missed())
}
