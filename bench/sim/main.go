// Command sim runs random fleets in virtual time until enough decisions were made, and fails
// where one breaks a promise. Then it puts faults into the code that were in it once, and
// fails unless each is found. No file is changed: the compiler reads another one in its place.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	c := campaign{}
	flag.StringVar(&c.root, "root", "..", "the root of the repository")
	flag.Int64Var(&c.decisions, "decisions", 200_000_000, "how many decisions to make")
	flag.Uint64Var(&c.seed, "seed", 1, "the first seed")
	flag.IntVar(&c.jobs, "jobs", runtime.NumCPU(), "how many processes run at a time, each on one core")
	flag.IntVar(&c.regions, "regions", 0, "only run so many scenarios of 200 instances in three regions")
	only := flag.Bool("faults", false, "only look for the faults that are put in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// campaign is all runs.
type campaign struct {
	root      string
	decisions int64
	seed      uint64
	jobs      int
	regions   int    // scenarios; 0 means others
	dir       string // of binaries
}

func (c *campaign) run(ctx context.Context, onlyFaults bool) (err error) {
	if c.root, err = filepath.Abs(c.root); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "sim"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	began := time.Now()
	binary, err := c.build(ctx, "tidegate", nil)
	if err != nil {
		return err
	}
	var sum tally
	if c.regions > 0 {
		if sum, err = c.playRegions(ctx, binary); err == nil {
			fmt.Printf("sim: %d decisions in %d scenarios of 200 nodes in three regions, no promise broken; %s\n", sum.decisions, sum.scenarios, time.Since(began).Round(time.Second))
		}
		return err
	}
	if !onlyFaults {
		if sum, err = c.play(ctx, binary); err != nil {
			return err
		}
	}
	for i := range faults {
		if err := c.find(ctx, &faults[i]); err != nil {
			return err
		}
	}
	fmt.Printf("sim: %d decisions in %d scenarios of 2 to 100 nodes, no promise broken; %d of %d faults found; %s\n",
		sum.decisions, sum.scenarios, len(faults), len(faults), time.Since(began).Round(time.Second))
	return nil
}
