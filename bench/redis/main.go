// Command redis measures Tidegate on Redis, through all the layers that tidegate
// serve puts around the store, beside redis_rate, beside throttled and beside
// itself without them: one redis-server, the same keys and limits, the same load,
// one run, one machine. It prints tables and one last line that a script can read.
//
// Load generator and Redis share the cores. The contestants take turns in many short
// rounds, so that a noisy neighbour hits all alike, and a ratio is the median of the
// ratios within each round. What each of them admits is compared with what the limit
// allows: nobody wins by being wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"runtime/debug"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run.
const mostTime = 20 * time.Minute

// garbage is what tidegate serve sets; it holds for all contestants, which share
// the process.
const garbage = 400

func main() {
	debug.SetGCPercent(garbage)
	rig.Main("bench-redis", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("redis", flag.ExitOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	markdown := flags.String("markdown", "", "also write the tables to this `FILE`, with machine and date")
	rounds := flags.Int("rounds", 15, "how many rounds count")
	heat := flags.Duration("heat", 400*time.Millisecond, "how long a contestant is asked in a round")
	only := flags.String("only", "", "run this `RACE` alone: keys, hot, attack, truth, scripts or cluster; there is no last line then")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *heat <= 0 {
		return errors.New("at least one round, and heats that take time")
	}

	start := time.Now()
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	b := &bench{server: server, rounds: *rounds, heat: *heat}
	f, err := b.all(ctx, *only)
	if err != nil {
		return err
	}
	r := report.New(start)
	s := f.summary()
	r.Notes, r.Tables, r.LastLine = append([]string{server.version}, versions...), f.tables(*heat), s.String()
	r.WriteText(out)
	if *markdown != "" {
		if err := r.WriteMarkdownFile(*markdown); err != nil {
			return err
		}
	}
	if err := f.wrong(); err != nil {
		return err
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, *check, s, s.missed())
}
