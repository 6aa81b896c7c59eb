// Command flood shows what a bounded memory store does when strangers send more
// keys than it has room for. The table stays within its bound, and so does the
// process; a caller that has used up a quota is not forgotten because of it; and
// where the flood itself holds as much debt as everybody else, OnFull says what is
// dropped or refused, and that is counted. Then one rule of six is flooded, by
// every algorithm: the answers of the other five do not change.
//
// Every case runs in a fresh process, as many at once as there are cores. It exits 1 when a
// case breaks a promise.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
)

// caseTime bounds a case whose process has stopped answering; floodTime is
// when the flood itself is given up, and that is said.
const (
	caseTime  = 12 * time.Minute
	floodTime = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("flood", flag.ExitOnError)
	keys := flags.Int("keys", 50_000_000, "fresh keys that flood a rule alone")
	megabytes := flags.Int64("mb", 200, "bound of its store, in MB")
	invented := flags.Int("invented", 10_000_000, "fresh keys that flood one rule of six")
	mebibytes := flags.Int64("mib", 256, "bound of their store, in MiB")
	only := flags.String("case", "", "play only the cases whose names start like this, for example light, default or sub_windows-refuse")
	child := flags.String("child", "", "used by this program when it runs itself: the case to play")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	alone := size{keys: *keys, maxBytes: *megabytes * 1_000_000}
	among := size{keys: *invented, maxBytes: *mebibytes << 20}
	all := floods(alone, among)
	if *child != "" {
		process.EndWithParent()
		for _, f := range all {
			if f.name == *child {
				o, err := f.play(ctx)
				if err != nil {
					return false, err
				}
				return true, process.Answer(o)
			}
		}
		return false, fmt.Errorf("no such case: %q", *child)
	}
	all = slices.DeleteFunc(all, func(f flood) bool { return !strings.HasPrefix(f.name, *only) })
	if len(all) == 0 {
		return false, fmt.Errorf("no case starts with %q", *only)
	}
	held := 0
	for i, r := range playAll(ctx, all, args) {
		fmt.Printf("%s: %s\n", all[i].name, all[i].about)
		if r.err != nil {
			return false, r.err
		}
		fmt.Print(r.report)
		for _, b := range r.broken {
			fmt.Printf("  BROKEN: %s\n", b)
		}
		if len(r.broken) == 0 {
			held++
		}
	}
	fmt.Printf("flood: %d of %d cases held\n", held, len(all))
	return held == len(all), nil
}

// result is how a case ended.
type result struct {
	report string
	broken []string
	err    error
}

// playAll plays the cases, each in a process of its own, and yields their results in their order.
func playAll(ctx context.Context, all []flood, args []string) iter.Seq2[int, result] {
	results := make([]chan result, len(all))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				var r result
				r.report, r.broken, r.err = all[i].check(func(o any) error {
					return process.Ask(ctx, caseTime, o, append(slices.Clip(args), "-child", all[i].name)...)
				})
				results[i] <- r
			}
		}()
	}
	return func(yield func(int, result) bool) {
		for i, r := range results {
			if !yield(i, <-r) {
				return
			}
		}
	}
}

// flood is a case of either kind.
type flood struct {
	name, about string
	play        func(context.Context) (any, error)
	check       func(ask func(o any) error) (report string, broken []string, err error)
}

// floods returns all cases: of one rule alone, and of one among six.
func floods(alone, among size) (all []flood) {
	for _, c := range cases {
		all = append(all, flood{
			c.name, c.about,
			func(ctx context.Context) (any, error) { return c.play(ctx, alone) },
			func(ask func(any) error) (string, []string, error) {
				var o outcome
				err := ask(&o)
				return o.report(alone), c.broken(alone, o), err
			},
		})
	}
	for _, c := range rulesCases() {
		all = append(all, flood{
			c.name(), "keys invented on one rule of six; blocked addresses and steady clients on the others",
			func(ctx context.Context) (any, error) { return c.play(ctx, among) },
			func(ask func(any) error) (string, []string, error) {
				var o rulesOutcome
				err := ask(&o)
				return o.report(among), c.broken(among, o), err
			},
		})
	}
	return all
}
