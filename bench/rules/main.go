// Command rules measures what it takes to find what a request is held to, among
// ten rules and among a thousand, three of which match in both. It prints one
// last line that a script can read.
//
// The two take turns in short rounds, so that a noisy neighbour hits both alike,
// and the ratio is the median of the ratios within each round.
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
			fmt.Fprintln(os.Stderr, "bench-rules:", err)
		}
		os.Exit(1)
	}
}

// errMissed is returned when a bar is missed; which one has been said by then.
var errMissed = errors.New("a bar is missed")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("rules", flag.ExitOnError)
	check := flags.Bool("check", false, "exit 1 when a bar is missed, naming it")
	rounds := flags.Int("rounds", 31, "how many rounds count")
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
	missed := s.missed()
	if *check {
		for _, m := range missed {
			fmt.Fprintln(out, "missed:", m)
		}
	}
	fmt.Fprintln(out, s)
	if *check && len(missed) > 0 {
		return errMissed
	}
	return nil
}

// progress goes to stderr, so that stdout is the result alone.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
