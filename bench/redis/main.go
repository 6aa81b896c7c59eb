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
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run.
const mostTime = 40 * time.Minute

// garbage is what tidegate serve sets; it holds for all contestants, which share
// the process.
const garbage = 400

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	debug.SetGCPercent(garbage)
	rig.Main("bench-redis", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := rig.NewFlags("redis", 15, 400*time.Millisecond, time.Millisecond)
	only := flags.Only("keys, hot, attack, truth, scripts, several or cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}

	start := time.Now()
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	b := &bench{server: server, rounds: flags.Rounds, heat: flags.Heat}
	f, err := b.all(ctx, *only)
	if err != nil {
		return err
	}
	r := report.New(start)
	s := f.summary()
	r.Notes, r.Tables, r.LastLine = append([]string{daemon.RedisVersion(ctx)}, versions...), f.tables(flags.Heat), s.String()
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	if err := f.wrong(); err != nil {
		return err
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, flags.Check, s, s.missed())
}
