package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// chunk is how many decisions a process makes, and seeds how many seeds are kept for it.
const (
	chunk = 2_000_000
	seeds = 10_000
)

type tally struct{ decisions, scenarios int64 }

// play runs scenarios, a chunk at a time in every job, until there were enough decisions.
func (c *campaign) play(ctx context.Context, binary string) (tally, error) {
	return c.playAll(ctx,
		func(ctx context.Context, n uint64) (tally, string, error) {
			return simulate(ctx, binary, c.seed+n*seeds, chunk)
		},
		func(sum tally) (done, all int64) { return sum.decisions, c.decisions })
}

// regionChunk is how many scenarios of regions a process plays.
const regionChunk = 25

// playRegions runs scenarios of regions, a chunk at a time in every job.
func (c *campaign) playRegions(ctx context.Context, binary string) (tally, error) {
	return c.playAll(ctx,
		func(ctx context.Context, n uint64) (tally, string, error) {
			return simulateAs(ctx, binary, c.seed+n*regionChunk, "--random-regions", regionChunk)
		},
		func(sum tally) (done, all int64) { return sum.scenarios, int64(c.regions) })
}

// playAll runs chunks in every job, by their numbers, until enough was done.
func (c *campaign) playAll(ctx context.Context, run func(ctx context.Context, n uint64) (tally, string, error), progress func(tally) (done, all int64)) (sum tally, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next  atomic.Uint64
		mu    sync.Mutex // over sum
		jobs  sync.WaitGroup
		began = time.Now()
	)
	for range c.jobs {
		jobs.Go(func() {
			for ctx.Err() == nil {
				got, out, err := run(ctx, next.Add(1)-1)
				if err != nil {
					cancel(fmt.Errorf("%w\n%s", err, out))
					return
				}
				mu.Lock()
				sum.decisions += got.decisions
				sum.scenarios += got.scenarios
				done, all := progress(sum)
				fmt.Fprintf(os.Stderr, "sim: %3d %% %d decisions in %d scenarios, %s\n", min(100, 100*done/all), sum.decisions, sum.scenarios, time.Since(began).Round(time.Second))
				enough := done >= all
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	jobs.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return sum, err
}

var (
	done   = regexp.MustCompile(`sim: (\d+) decisions in (\d+) scenarios`)
	broken = regexp.MustCompile(`--random 1 --seed (\d+)`)
)

// simulate runs random scenarios from a seed on. The error says that a promise was broken, or that
// the process ended otherwise; out is what it printed.
func simulate(ctx context.Context, binary string, seed uint64, decisions int64) (t tally, out string, err error) {
	return simulateAs(ctx, binary, seed, "--random", decisions)
}

// simulateAs is simulate for a kind of scenarios, and how much of it.
func simulateAs(ctx context.Context, binary string, seed uint64, kind string, much int64) (t tally, out string, err error) {
	cmd := exec.CommandContext(ctx, binary, "sim", kind, strconv.FormatInt(much, 10), "--seed", strconv.FormatUint(seed, 10))
	var text, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &log
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if err := cmd.Run(); err != nil {
		if text.Len() == 0 { // it ended before it could tell
			text.Write(log.Bytes())
		}
		return t, text.String(), fmt.Errorf("scenarios from seed %d on: %w", seed, err)
	}
	m := done.FindStringSubmatch(text.String())
	if m == nil {
		return t, text.String(), fmt.Errorf("scenarios from seed %d on said nothing", seed)
	}
	t.decisions, _ = strconv.ParseInt(m[1], 10, 64)
	t.scenarios, _ = strconv.ParseInt(m[2], 10, 64)
	return t, text.String(), nil
}
