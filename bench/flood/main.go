// Command flood shows what a bounded memory store does when strangers send more
// keys than it has room for. The table stays within its bound, and so does the
// process; a caller that has used up a quota is not forgotten because of it; and
// where the flood itself holds as much debt as everybody else, OnFull says what is
// dropped or refused, and that is counted. Then one rule of six is flooded, by
// every algorithm: the answers of the other five do not change.
//
// Every case runs in a fresh process. It exits 1 when a case breaks a promise.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
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
	ok = true
	var played, broken int
	for _, f := range all {
		if !strings.HasPrefix(f.name, *only) {
			continue
		}
		fmt.Printf("%s: %s\n", f.name, f.about)
		report, found, err := f.check(func(o any) error {
			return process.Ask(ctx, caseTime, o, append(args, "-child", f.name)...)
		})
		if err != nil {
			return false, err
		}
		fmt.Print(report)
		for _, b := range found {
			ok = false
			fmt.Printf("  BROKEN: %s\n", b)
		}
		if played++; len(found) > 0 {
			broken++
		}
	}
	if played == 0 {
		return false, fmt.Errorf("no case starts with %q", *only)
	}
	fmt.Printf("flood: %d of %d cases held\n", played-broken, played)
	return ok, nil
}

// flood is a case of either kind.
type flood struct {
	name, about string
	play        func(context.Context) (any, error)
	check       func(ask func(o any) error) (report string, broken []string, err error)
}

// floods are all cases: of one rule alone, and of one among six.
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
