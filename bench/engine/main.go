// Command engine measures Tidegate's memory store, Limiter and middleware
// beside the libraries a Go developer would pick instead, all in one run, and
// prints a table of ratios and one last line that a script can read.
//
// Absolute figures are the machine's; the ratios are what is promised. So that
// a noisy neighbour hits all alike, contestants take turns in short rounds, and
// a ratio is the median of the ratios within each round.
package main

import (
	"context"
	"flag"
	"io"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run.
const mostTime = 30 * time.Minute

func main() {
	rig.Main("bench-engine", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("engine", flag.ExitOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	markdown := flags.String("markdown", "", "also write the tables to this file, with machine and date")
	scale := flags.Float64("scale", 1, "share of the usual rounds and keys; below 1 for a quick look, whose figures mean little")
	child := flags.String("child", "", "used by this program when it runs itself: the part to play")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *child != "" {
		return playChild(ctx, *child, flags.Args())
	}

	start := time.Now()
	f, err := measure(ctx, plan{scale: *scale})
	if err != nil {
		return err
	}
	r := f.report(start)
	if err := r.Write(out, *markdown); err != nil {
		return err
	}
	return rig.Conclude(out, *check, f.summary, f.summary.missed())
}

// measure runs everything. The parts that need the most memory come after
// those that need an undisturbed heap.
func measure(ctx context.Context, p plan) (*findings, error) {
	f := &findings{}
	for _, part := range []func(context.Context, plan, *findings) error{
		measureHot, measureCores, measureLimits, measureMiddleware, measureUniform, measureBytes,
	} {
		if err := part(ctx, p, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// plan says how much of the usual work to do.
type plan struct{ scale float64 }

func (p plan) of(usual, least int) int { return max(least, int(float64(usual)*p.scale)) }
