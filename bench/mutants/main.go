// Command mutants shows that the suite of store/storetest finds faults: it puts one
// small fault after another into the arithmetic of every algorithm, in Go and in Lua,
// and runs the suite, which has to fail each time. The faults are listed in
// mutants.txt. No file is changed: the compiler reads another one in its place.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"sync"
	"text/tabwriter"
	"time"
)

//go:embed mutants.txt
var list string

// perAlgorithm is how many mutants of its Go code every algorithm has at least.
const perAlgorithm = 10

var algorithms = []string{
	"token_bucket", "leaky_bucket", "fixed_window", "quota", "sliding_log", "sliding_window", "sub_windows", "concurrency",
}

func main() {
	root := flag.String("root", "..", "the root of the repository")
	only := flag.String("only", "", "a regexp: run only mutants whose name matches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	all, err := parse(list)
	if err != nil {
		return err
	}
	if err := enough(all); err != nil {
		return err
	}
	var chosen []mutant
	for _, m := range all {
		if wanted.MatchString(m.name()) {
			chosen = append(chosen, m)
		}
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	lab, err := newLab(root, dir)
	if err != nil {
		return err
	}
	if err := lab.sane(ctx); err != nil {
		return err
	}
	began := time.Now()
	results := lab.runAll(ctx, chosen)
	return report(results, time.Since(began))
}

// enough reports an algorithm with too few mutants.
func enough(all []mutant) error {
	count := map[string]int{}
	for _, m := range all {
		if !m.lua() {
			count[m.algorithm]++
		}
	}
	for _, a := range algorithms {
		if count[a] < perAlgorithm {
			return fmt.Errorf("%s has %d mutants in mutants.txt: want %d", a, count[a], perAlgorithm)
		}
	}
	return nil
}

// runAll runs as many at a time as there are cores, and shows how far it is.
func (l *lab) runAll(ctx context.Context, chosen []mutant) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				results[i] = l.try(ctx, i, chosen[i])
				mu.Lock()
				done++
				fmt.Printf("%3d of %d  %-9s %5.1fs  %s\n", done, len(chosen), results[i].fate, results[i].took.Seconds(), chosen[i].name())
				mu.Unlock()
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// report prints a row for each algorithm, and fails unless every mutant was killed.
func report(results []result, took time.Duration) error {
	killed, made := map[string]int{}, map[string]int{}
	alive := 0
	for _, r := range results {
		made[r.row()]++
		if r.fate == dead {
			killed[r.row()]++
			continue
		}
		alive++
		fmt.Printf("\n%s: %s\n%s\n", r.mutant.name(), r.fate, r.output)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nalgorithm\tmutants\tkilled")
	for _, kind := range []string{"", " (Lua)"} {
		for _, a := range algorithms {
			if row := a + kind; made[row] > 0 {
				fmt.Fprintf(w, "%s\t%d\t%d\n", row, made[row], killed[row])
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("in %s\n", took.Round(time.Second))
	if alive > 0 {
		return fmt.Errorf("%d of %d mutants were not killed", alive, len(results))
	}
	return nil
}
