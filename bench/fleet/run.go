package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// round is one run of three instances on a Redis of its own.
type round struct {
	name   string
	leased bool
	kill   bool          // one instance is killed after a third of the time and starts again
	skew   time.Duration // of the clocks of the others
	freeze time.Duration // Redis stands still for so long after half of the time
}

const instances = 3

// result of a round.
type result struct {
	round
	replayed
	calls int64
	lasts time.Duration
}

// startUp is how long instances have before load begins: they have to find each other.
const startUp = 5 * time.Second

// settling is for how long after an outage the bounds of an outage hold.
const settling = 3 * time.Second

func (r round) play(ctx context.Context, lasts time.Duration) (res result, err error) {
	rig.Progress("%s: %s", r.name, lasts)
	dir, err := os.MkdirTemp("", "tidegate-fleet-")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	server, err := startRedis(ctx, dir)
	if err != nil {
		return res, err
	}
	defer server.stop()
	start := time.Now().Add(startUp)
	running := make([]*child, instances)
	for i := range running {
		s := setup{
			redis: "redis://" + server.Address, log: filepath.Join(dir, fmt.Sprint("log", i)), leased: r.leased,
			skew: time.Duration(i) * r.skew, start: start.UnixNano(), lasts: lasts, share: instances, offered: offered,
		}
		if running[i], err = startInstance(ctx, s); err != nil {
			return res, err
		}
		defer running[i].end()
	}
	if err := sleepUntil(ctx, start); err != nil {
		return res, err
	}
	before, err := server.calls(ctx)
	if err != nil {
		return res, err
	}
	outage, err := r.disturb(ctx, server, running, start, lasts)
	if err != nil {
		return res, err
	}
	for _, c := range running {
		if err := c.wait(); err != nil {
			return res, err
		}
	}
	after, err := server.calls(ctx)
	if err != nil {
		return res, err
	}
	var all []outcome
	for i := range running {
		log, err := readLog(filepath.Join(dir, fmt.Sprint("log", i)))
		if err != nil {
			return res, err
		}
		all = append(all, log...)
	}
	return result{round: r, replayed: replay(all, outage), calls: after - before, lasts: lasts}, nil
}

// disturb does what is to happen during a round.
func (r round) disturb(ctx context.Context, server *redisServer, running []*child, start time.Time, lasts time.Duration) (outage span, err error) {
	if r.kill {
		if err := sleepUntil(ctx, start.Add(lasts/3)); err != nil {
			return outage, err
		}
		if running[0], err = running[0].killAndRestart(ctx); err != nil {
			return outage, err
		}
	}
	if r.freeze > 0 {
		if err := sleepUntil(ctx, start.Add(lasts/2)); err != nil {
			return outage, err
		}
		outage.from = time.Now()
		if err := syscall.Kill(server.PID, syscall.SIGSTOP); err != nil {
			return outage, err
		}
		time.Sleep(r.freeze)
		if err := syscall.Kill(server.PID, syscall.SIGCONT); err != nil {
			return outage, err
		}
		outage.to = time.Now().Add(settling)
	}
	return outage, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// child is an instance in a process of its own.
type child struct {
	setup setup
	cmd   *exec.Cmd
	ended chan error
}

func startInstance(ctx context.Context, s setup) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{setup: s, cmd: exec.CommandContext(ctx, self, s.args()...), ended: make(chan error, 1)}
	c.cmd.Stderr, c.cmd.SysProcAttr = os.Stderr, daemon.EndWithUs()
	if _, err := c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.ended <- c.cmd.Wait() }()
	return c, nil
}

func (c *child) killAndRestart(ctx context.Context) (*child, error) {
	c.end()
	return startInstance(ctx, c.setup)
}

// end kills it, if it still runs.
func (c *child) end() { _ = c.cmd.Process.Kill() }

func (c *child) wait() error {
	if err := <-c.ended; err != nil {
		return fmt.Errorf("an instance failed: %w", err)
	}
	return nil
}

var errNoRounds = errors.New("at least one round, of at least a second")
