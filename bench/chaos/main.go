// Command chaos breaks Redis in every way it knows, under three gateways that share it,
// and tells what became of the requests: how long the slowest answer took, whether the
// limiter made errors of its own, how much was admitted, how long it took to recover
// and whether anything was left behind.
//
// The gateways are processes: this program, run again as tidegate serve with a probe
// beside it. The Redis servers are processes as well, which the faults are done to.
// Everything listens on loopback and ends with this program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/marked"
)

// mostTime bounds a run.
const mostTime = 30 * time.Minute

func main() {
	if len(os.Args) == 4 && os.Args[1] == nodeWord {
		os.Exit(runNode(os.Args[2], os.Args[3]))
	}
	rig.Main("chaos", mostTime, run)
}

var errMissed = errors.New("a bound is missed, see above")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	name := flags.String("row", "", "run the rows that this `REGEXP` finds")
	update := flags.String("update", "", "write the table into this `FILE`, between its marks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	picked, err := pick(*name)
	if err != nil {
		return err
	}
	started := time.Now()
	var all []*outcome
	for i, r := range picked {
		fmt.Fprintf(out, "%d/%d %s: %s\n", i+1, len(picked), r.name, r.what)
		o, err := r.attempt(ctx, out)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		all = append(all, o)
	}
	if *update != "" {
		if err := marked.Update(*update, "chaos", tables(all, started)); err != nil {
			return err
		}
	}
	return verdict(all, out, started)
}

const (
	mostTries = 4 // of a row that missed a bound on a machine that stood still
	patience  = time.Minute
)

func (r row) attempt(ctx context.Context, out io.Writer) (*outcome, error) {
	for try := 1; ; try++ {
		awaitQuiet(ctx, patience)
		o, err := r.run(ctx)
		if err != nil {
			return nil, err
		}
		o.tries = try
		o.tell(out)
		if len(o.missed) == 0 || !o.disturbed() || try == mostTries {
			return o, nil
		}
		fmt.Fprintln(out, "  once more: the machine stood still for longer than the deadline")
	}
}

// verdict is the last line, and an error when a bound is missed.
func verdict(all []*outcome, out io.Writer, started time.Time) error {
	missed := 0
	for _, o := range all {
		if len(o.missed) > 0 {
			missed++
		}
	}
	fmt.Fprintf(out, "chaos: %d rows, %d missed, %s\n", len(all), missed, time.Since(started).Round(time.Second))
	if missed > 0 {
		return errMissed
	}
	return nil
}

// pick finds rows by name.
func pick(pattern string) ([]row, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-row: %w", err)
	}
	var found []row
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
		if re.MatchString(r.name) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no row is called %q; there are: %s", pattern, strings.Join(names, ", "))
	}
	return found, nil
}
