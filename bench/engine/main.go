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
	"fmt"
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
	only := flags.String("only", "", "measure this `PART` alone: hot, cores, limits, middleware, uniform or bytes; there is no last line then")
	child := flags.String("child", "", "used by this program when it runs itself: the part to play")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *child != "" {
		return playChild(ctx, *child, flags.Args())
	}

	start := time.Now()
	f, err := measure(ctx, plan{scale: *scale}, *only)
	if err != nil {
		return err
	}
	r := f.report(start)
	if *only != "" { // there is no summary of a part
		r.LastLine = ""
		return r.Write(out, *markdown)
	}
	if err := r.Write(out, *markdown); err != nil {
		return err
	}
	rig.TellAims(out, f.summary.aims()...)
	return rig.Conclude(out, *check, f.summary, f.summary.missed())
}

// parts are what is measured. Those that need the most memory come after those that need an
// undisturbed heap.
var parts = []struct {
	name    string
	measure func(context.Context, plan, *findings) error
}{
	{"hot", measureHot},
	{"cores", measureCores},
	{"limits", measureLimits},
	{"middleware", measureMiddleware},
	{"uniform", measureUniform},
	{"bytes", measureBytes},
}

// measure runs all parts, or only one.
func measure(ctx context.Context, p plan, only string) (*findings, error) {
	f, found := &findings{}, false
	for _, part := range parts {
		if only != "" && only != part.name {
			continue
		}
		found = true
		if err := part.measure(ctx, p, f); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("-only %s: there is no such part", only)
	}
	return f, nil
}

// plan says how much of the usual work to do.
type plan struct{ scale float64 }

func (p plan) of(usual, least int) int { return max(least, int(float64(usual)*p.scale)) }
