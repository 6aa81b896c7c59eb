package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// slowhttptest runs the program of that name with the given flags. It opens all connections
// within about a second, and does not open them again.
func slowhttptest(path string, flags ...string) func(context.Context, string) (time.Duration, error) {
	const opening, most = 5 * time.Second, 30 * time.Second
	return func(ctx context.Context, url string) (time.Duration, error) {
		n := strconv.Itoa(attackers)
		args := append([]string{"-c", n, "-r", n, "-l", "60", "-p", "20", "-u", url + path}, flags...)
		ctx, cancel := context.WithCancel(ctx)
		cmd := exec.CommandContext(ctx, "slowhttptest", args...)
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			cancel()
			return 0, err
		}
		defer func() {
			cancel()
			_ = cmd.Wait() // it was killed, or has ended by itself
		}()
		if err := awaitConnections(url, true, opening); err != nil {
			return 0, fmt.Errorf("slowhttptest does not attack: %w", err)
		}
		time.Sleep(time.Second) // until all are there
		start := time.Now()
		err := awaitConnections(url, false, most)
		return time.Since(start), err
	}
}
