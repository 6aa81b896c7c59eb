// Command telemetry measures what watching costs: decisions of a Gate with metrics and the lists of
// offenders on and off, the lists alone, and calls of the rate limit service for Envoy with both on
// and off. It prints a table and one last line that a script can read.
//
// On and off take turns in short rounds, so that a noisy neighbour hits both alike, and a ratio is
// the median of the ratios within each round.
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
const mostTime = 30 * time.Minute

func main() {
	// Children are told to end with the thread that started them.
	runtime.LockOSThread()
	rig.Main("bench-telemetry", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == childWord {
		return playChild(ctx, args[1:])
	}
	flags := rig.NewFlags("telemetry", 21, time.Second, 20*time.Millisecond)
	only := flags.Only("engine, offenders or rls")
	if err := flags.Parse(args); err != nil {
		return err
	}
	start := time.Now()
	neighbours, err := process.LookAround(ctx)
	if err != nil {
		return err
	}
	var s summary
	for _, part := range []struct {
		name    string
		measure func(ctx context.Context, rounds int, heat time.Duration, s *summary) error
	}{{"engine", measureEngine}, {"offenders", measureOffenders}, {"rls", measureRLS}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.measure(ctx, flags.Rounds, flags.Heat, &s); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r := report.New(start)
	r.Notes, r.LastLine, r.Tables = []string{neighbours}, s.String(), s.tables
	if err := r.Write(out, flags.Markdown); err != nil {
		return err
	}
	if *only != "" {
		return nil
	}
	return rig.Conclude(out, flags.Check, s, s.missed())
}
