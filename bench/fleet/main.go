// Command fleet has three processes share one key of 20,000 a second under three times that
// load, once strict and several times on leases: one of them killed, with wrong clocks, and
// with a Redis that stands still. It merges what they admitted, replays it through an exact
// bucket, and counts the calls of Redis.
//
// Then three and eight processes exchange counts of one key of 2,000 in two seconds, under three times
// that load and under nine tenths of it, and with answers of Redis that are lost. At last, three processes
// in each of two regions share a limit: they are cut off from each other for 20 s, and one loses its Redis.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

func main() {
	asInstance()
	runtime.LockOSThread() // children end with the thread that started them
	rig.Main("fleet", time.Hour, run)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("fleet", flag.ExitOnError)
	check := f.Bool("check", false, "exit 1 when a bar is missed, naming it")
	rounds := f.Int("rounds", 10, "how many rounds on leases count")
	lasts := f.Duration("for", 30*time.Second, "how long a round is")
	onlyEventual := f.Bool("eventual", false, "only the rounds that exchange counts")
	onlyRegions := f.Bool("regions", false, "only the rounds of two regions")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *lasts < time.Second {
		return errNoRounds
	}
	all := []round{{name: "strict"}}
	for i := range *rounds {
		r := round{name: "leased", leased: true}
		switch i % 5 {
		case 1:
			r.name, r.kill = "leased, one instance killed", true
		case 3:
			r.name, r.skew = "leased, clocks 3 s apart", 3*time.Second
		}
		all = append(all, r)
	}
	all = append(all, round{name: "leased, Redis stands still for 2 s", leased: true, freeze: 2 * time.Second})
	if *onlyEventual || *onlyRegions {
		all = nil
	}
	var results []result
	for _, r := range all {
		var res result
		if err := undisturbed(ctx, r.name, func() (err error) {
			res, err = r.play(ctx, *lasts)
			return err
		}); err != nil {
			return err
		}
		results = append(results, res)
		print(out, res)
	}
	s := summarize(results)
	exchanged := eventualRounds
	if *onlyRegions {
		exchanged = nil
	}
	for _, r := range exchanged {
		var res eventualResult
		if err := undisturbed(ctx, r.String(), func() (err error) {
			res, err = r.play(ctx, min(*lasts, eventualLasts))
			return err
		}); err != nil {
			return err
		}
		printEventual(out, res)
		s.add(res)
	}
	missed := s.missed()
	if *onlyRegions {
		missed = nil
	}
	if !*onlyEventual {
		for _, on := range []string{"continue", "share"} {
			var res regionResult
			if err := undisturbed(ctx, "regions", func() (err error) {
				res, err = playRegions(ctx, on)
				return err
			}); err != nil {
				return err
			}
			printRegions(out, &res)
			missed = append(missed, res.missed()...)
		}
	}
	return rig.Conclude(out, *check, s, missed)
}

// undisturbed is [process.Undisturbed] for a round whose result the next one replaces.
func undisturbed(ctx context.Context, name string, play func() error) error {
	return process.Undisturbed(ctx, name, play, func() {})
}

func print(out io.Writer, r result) {
	fmt.Fprintf(out, "%-36s %10s asked %9s admitted  use %.1f %%  not conforming %d (over by %d)  calls %s, 1 per %.0f requests  local %s\n",
		r.name, report.Thousands(r.asked), report.Thousands(r.admitted), 100*r.use, r.nonconforming, r.worst,
		report.Thousands(r.calls), float64(r.asked)/float64(max(r.calls, 1)), report.Thousands(r.local()))
}
