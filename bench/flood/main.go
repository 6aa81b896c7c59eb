// Command flood shows what a bounded memory store does when strangers send more
// keys than it has room for: the table stays within its bound, and so does the
// process; somebody who has used up a quota is not forgotten because of it; and
// where the flood itself holds as much debt as everybody else, what has to be
// given up is what OnFull says, and is counted.
//
// Every case runs in a fresh process. It exits 1 when a case breaks a promise.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
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
	keys := flags.Int("keys", 50_000_000, "fresh keys that flood the store")
	megabytes := flags.Int64("mb", 200, "bound of the store, in MB")
	only := flags.String("case", "", "play only this case: light, heavy-evict or heavy-refuse")
	child := flags.String("child", "", "used by this program when it runs itself: the case to play")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	s := size{keys: *keys, maxBytes: *megabytes * 1_000_000}
	if *child != "" {
		process.EndWithParent()
		c, err := findCase(*child)
		if err != nil {
			return false, err
		}
		o, err := c.play(ctx, s)
		if err != nil {
			return false, err
		}
		return true, process.Answer(o)
	}

	var summary string
	ok = true
	if _, err := findCase(*only); *only != "" && err != nil {
		return false, err
	}
	for _, c := range cases {
		if *only != "" && *only != c.name {
			continue
		}
		fmt.Printf("%s: %s\n", c.name, c.about)
		var o outcome
		err := process.Ask(ctx, caseTime, &o, "-keys", fmt.Sprint(*keys), "-mb", fmt.Sprint(*megabytes), "-child", c.name)
		if err != nil {
			return false, err
		}
		fmt.Print(o.report(s))
		for _, broken := range c.broken(s, o) {
			ok = false
			fmt.Printf("  BROKEN: %s\n", broken)
		}
		summary += fmt.Sprintf(" %s %d/%d admitted again, %d forgotten, %d refused;", c.name, o.Again, debtors, o.Forgotten, o.RefusedFull)
	}
	verdict := "held"
	if !ok {
		verdict = "BROKEN"
	}
	fmt.Printf("flood:%s %s\n", summary, verdict)
	return ok, nil
}
