// Command rules measures how long it takes to find the limits of a request among
// ten rules and among a thousand, three of which match in both; how long it takes
// to load many rules and how much memory they keep; and how long a decision takes at worst
// while rules are loaded again. It prints one last line that a script can read.
//
// The two take turns in short rounds, so that a noisy neighbour hits both alike,
// and the ratio is the median of the ratios within each round.
package main

import (
	"context"
	"flag"
	"io"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
)

// mostTime bounds a run.
const mostTime = 10 * time.Minute

func main() {
	rig.Main("bench-rules", mostTime, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rules", flag.ExitOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	rounds := flags.Int("rounds", 31, "how many rounds count")
	some := flags.Int("some", 10_000, "how many rules are loaded, and loaded again")
	lots := flags.Int("lots", 100_000, "how many rules are loaded from a folder, and weighed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	few, err := load(10)
	if err != nil {
		return err
	}
	many, err := load(1000)
	if err != nil {
		return err
	}
	s, err := race(ctx, few, many, *rounds)
	if err != nil {
		return err
	}
	if s.some, err = loadFolder(ctx, *some, 3); err != nil {
		return err
	}
	if s.lots, err = loadFolder(ctx, *lots, 2); err != nil {
		return err
	}
	if s.reload, err = reload(ctx, *some, 5); err != nil {
		return err
	}
	return rig.Conclude(out, *check, s, s.missed())
}
