package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
)

// childWord is the first argument of the processes this program starts of itself.
const childWord = "-child"

// playChild is main of those.
func playChild(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "noop":
		return serveNoop(ctx, args[1])
	case len(args) == 5 && args[0] == "load":
		process.EndWithParent()
		pid, errP := strconv.Atoi(args[2])
		descriptors, errN := strconv.Atoi(args[3])
		d, errD := time.ParseDuration(args[4])
		if errP != nil || errN != nil || errD != nil {
			return fmt.Errorf("child load: %q", args)
		}
		t, err := drive(ctx, args[1], pid, descriptors, d)
		if err != nil {
			return err
		}
		return process.Answer(t)
	}
	return fmt.Errorf("no such child: %q", args)
}

// load lets a process of its own ask the server at address, whose CPU time is that of pid.
func load(ctx context.Context, address string, pid, descriptors int, d time.Duration) (t tally, err error) {
	err = process.Ask(ctx, d+30*time.Second, &t, childWord, "load", address, strconv.Itoa(pid), strconv.Itoa(descriptors), d.String())
	return t, err
}
