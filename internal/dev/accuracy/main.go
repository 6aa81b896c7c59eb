// Command accuracy runs every algorithm that decides at once against an exact
// log, over shapes of traffic, and reports how often and how far each is wrong.
// It prints tables, draws plots, and writes the tables into docs/algorithms.md:
//
//	go run ./internal/dev/accuracy -out docs/img -update docs/algorithms.md
//
// It tests the laws of internal/algo alone: no store, no clock. The same seed
// gives the same numbers, on any number of cores. Start with measure.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tidegate.dev/tidegate/internal/dev/marked"
)

func main() {
	var (
		out    = flag.String("out", "", "directory to write the plots to; empty: no plots")
		update = flag.String("update", "", "markdown file in which to replace the tables; empty: none")
		scale  = flag.Float64("scale", 1, "how many clients, relative to the published run")
		seed   = flag.Uint64("seed", 1, "seed of the traffic")
	)
	flag.Parse()
	if flag.NArg() > 0 || *scale <= 0 {
		fmt.Fprintln(os.Stderr, "usage: accuracy [-out dir] [-update file.md] [-scale factor above 0] [-seed number]")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Stderr, *scale, *seed, *out, *update); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(stdout, stderr io.Writer, scale float64, seed uint64, out, update string) error {
	began := time.Now()
	results := measure(contestants(), shapes(1), scale, seed, runtime.GOMAXPROCS(0), stderr)
	fmt.Fprintf(stderr, "measured in %s\n\n", time.Since(began).Round(time.Second))
	tables := report(contestants(), results)
	if _, err := io.WriteString(stdout, tables); err != nil {
		return err
	}
	if out != "" {
		if err := writePlots(out, results); err != nil {
			return fmt.Errorf("write plots: %w", err)
		}
	}
	if update != "" {
		if err := marked.Update(update, "accuracy", tables); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	return nil
}

func writePlots(dir string, results []result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	plots := map[string]string{
		"accuracy-most.svg":     plotMost(contestants(), results),
		"accuracy-wrong.svg":    plotWrong(contestants(), results),
		"accuracy-admitted.svg": plotAdmitted(contestants(), results),
		"accuracy-boundary.svg": plotTimeline(boundaryAttack),
		"accuracy-hammer.svg":   plotTimeline(hammerAttack),
	}
	for name, plot := range plots {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return nil
}
