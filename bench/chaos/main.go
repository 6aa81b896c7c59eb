// Command chaos breaks Redis in every way it knows, under gateways that share it, and
// reports what happened to the requests: how long the slowest answer took, whether the
// limiter caused errors of its own, how much was admitted, how long recovery took and
// whether anything was left behind. It also puts Redis far away, gives the gateways
// different versions of a rule, replaces them, and takes masters of a Cluster from them.
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
	"tidegate.dev/tidegate/internal/dev/marked"
)

// mostTime bounds a run.
const mostTime = 60 * time.Minute

func main() {
	asNode()
	asProgram()
	rig.Main("chaos", mostTime, run)
}

var errMissed = errors.New("a bound is missed, see above")

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	name := flags.String("row", "", "run the rows that this `REGEXP` finds")
	update := flags.String("update", "", "write the tables into this `FILE`, between their marks")
	list := flags.Bool("list", false, "only say which rows there are")
	logs := flags.String("logs", "", "keep what the gateways say in this `DIR`")
	var with indulgence
	flags.IntVar(&with.tries, "tries", 4, "run a row up to `N` times if it misses a bound while a process stood still for longer than the deadline")
	flags.DurationVar(&with.wait, "wait", time.Minute, "wait for up to so long for the machine to be quiet, before each try")
	if err := flags.Parse(args); err != nil {
		return err
	}
	picked, n, err := pick(*name)
	if err != nil {
		return err
	}
	if *logs != "" {
		if err := os.MkdirAll(*logs, 0o700); err != nil {
			return err
		}
		ctx = context.WithValue(ctx, logsKey{}, *logs)
	}
	started, done, missed := time.Now(), 0, 0
	for _, s := range picked {
		var all []attempted
		for _, t := range s.trials {
			done++
			fmt.Fprintf(out, "%d/%d %s: %s\n", done, n, t.name, t.what)
			if *list {
				continue
			}
			a := t.attempt(ctx, with, out)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if len(a.misses()) > 0 {
				missed++
			}
			all = append(all, a)
		}
		if *update != "" && !*list {
			if err := marked.Update(*update, s.mark, s.page(all, started)); err != nil {
				return err
			}
		}
	}
	if *update != "" && *name == "" && !*list {
		if err := marked.Update(*update, "summary", summary(n, missed, started)); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "chaos: %d rows, %d missed, %s\n", n, missed, time.Since(started).Round(time.Second))
	if missed > 0 {
		return errMissed
	}
	return nil
}

// summary returns what the page says of the whole run.
func summary(rows, missed int, started time.Time) string {
	bounds := "every bound held"
	if missed > 0 {
		bounds = fmt.Sprintf("%d of them missed a bound, as the text below the table says", missed)
	}
	return fmt.Sprintf("The last run of all %d rows took %.0f minutes, on %s; %s.", rows, time.Since(started).Minutes(), started.Format("2 January 2006"), bounds)
}

// pick finds rows by name, and tells how many there are.
func pick(pattern string) (found []section, n int, err error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, fmt.Errorf("-row: %w", err)
	}
	var names []string
	for _, s := range sections() {
		some := s
		some.trials = nil
		for _, t := range s.trials {
			names = append(names, t.name)
			if re.MatchString(t.name) {
				some.trials = append(some.trials, t)
				n++
			}
		}
		if len(some.trials) > 0 {
			found = append(found, some)
		}
	}
	if n == 0 {
		return nil, 0, fmt.Errorf("no row is called %q; there are: %s", pattern, strings.Join(names, ", "))
	}
	return found, n, nil
}
