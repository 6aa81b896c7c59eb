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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, errMissed) {
			fmt.Fprintln(os.Stderr, "bench-engine:", err)
		}
		os.Exit(1)
	}
}

// errMissed is returned when a bar is missed; which one has been said by then.
var errMissed = errors.New("a bar is missed")

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

	r, err := measure(ctx, plan{scale: *scale})
	if err != nil {
		return err
	}
	r.writeText(out)
	if *markdown != "" {
		if err := r.writeMarkdownFile(*markdown); err != nil {
			return err
		}
	}
	missed := r.summary.missed()
	if *check {
		for _, m := range missed {
			fmt.Fprintln(out, "missed:", m)
		}
	}
	fmt.Fprintln(out, r.summary)
	if *check && len(missed) > 0 {
		return errMissed
	}
	return nil
}

// measure runs everything. The parts that need the most memory come after
// those that need an undisturbed heap.
func measure(ctx context.Context, p plan) (*report, error) {
	start := time.Now()
	r := &report{machine: thisMachine(), date: start}
	for _, part := range []func(context.Context, plan, *report) error{
		measureHot, measureCores, measureMiddleware, measureUniform, measureBytes,
	} {
		if err := part(ctx, p, r); err != nil {
			return nil, err
		}
	}
	r.took = time.Since(start)
	return r, nil
}

// plan says how much of the usual work to do.
type plan struct{ scale float64 }

func (p plan) of(usual, least int) int { return max(least, int(float64(usual)*p.scale)) }

// progress goes to stderr, so that stdout is the result alone.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
