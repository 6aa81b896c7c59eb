// Package served runs the gateway as it is installed: built from this tree, in a process
// of its own, on loopback, in front of an upstream. Start with [Start].
package served

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// How long a gateway may take to listen, and to end.
const (
	startTime = 20 * time.Second
	stopTime  = 10 * time.Second
)

// Gateway is a process that serves.
type Gateway struct {
	URL   string // for clients
	Admin string // for operators
	PID   int

	cmd   *exec.Cmd
	ended chan struct{}
}

// Build compiles the command into dir and returns its file.
func Build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "tidegate")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", file, "tidegate.dev/tidegate/cmd/tidegate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build tidegate: %w\n%s", err, out)
	}
	return file, nil
}

// BuildTemp compiles the command into a new folder, which the caller removes.
func BuildTemp(ctx context.Context) (dir, program string, err error) {
	if dir, err = os.MkdirTemp("", "tidegate-bench-"); err != nil {
		return "", "", err
	}
	if program, err = Build(ctx, dir); err != nil {
		return "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, program, nil
}

// Start runs the program with the given flags of tidegate serve, and returns when it
// listens. What it says, apart from requests, goes to stderr if it fails.
func Start(ctx context.Context, program string, flags ...string) (*Gateway, error) {
	args := append([]string{"serve", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--log.access=off", "--drain=2s"}, flags...)
	g := &Gateway{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	g.cmd.SysProcAttr = daemon.EndWithUs()
	output, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start tidegate: %w", err)
	}
	g.PID = g.cmd.Process.Pid
	serving := make(chan bool, 1)
	go func() {
		defer close(g.ended)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			var line struct{ Level, Msg, Gateway, Admin string }
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Level == "ERROR" {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
			if line.Msg == "serving" {
				g.URL, g.Admin = line.Gateway, line.Admin
				serving <- true
			}
		}
		_ = g.cmd.Wait()
	}()
	select {
	case <-serving:
		return g, nil
	case <-g.ended:
		return nil, errors.New("tidegate ended before it listened")
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(startTime):
		err = fmt.Errorf("tidegate does not listen after %s", startTime)
	}
	g.Stop()
	return nil, err
}

// Alive reports whether the process has not ended.
func (g *Gateway) Alive() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// Stop ends the process.
func (g *Gateway) Stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.ended:
	case <-time.After(stopTime):
		_ = g.cmd.Process.Kill()
		<-g.ended
	}
}
