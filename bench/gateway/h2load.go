package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// h2Streams is how many requests a connection has under way.
const h2Streams = 8

// h2load is the load generator of that name, for HTTP/2.
type h2load struct{ program string }

func findH2load() (h2load, error) {
	program, err := exec.LookPath("h2load")
	if err != nil {
		return h2load{}, fmt.Errorf("the load generator for HTTP/2 is missing: run scripts/bench-deps.sh as root (%w)", err)
	}
	return h2load{program}, nil
}

// run asks for url for about d.
func (h h2load) run(ctx context.Context, connections int, url string, d time.Duration) (wrk.Tally, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, "-c", strconv.Itoa(connections), "-m", strconv.Itoa(h2Streams), "-t", strconv.Itoa(wrk.Threads),
		"-D", strconv.Itoa(int(d.Seconds())), url)
	cmd.SysProcAttr = daemon.EndWithUs()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return wrk.Tally{}, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return readH2load(out)
}

var (
	h2Requests = regexp.MustCompile(`(?m)^requests: .* (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout$`)
	h2Status   = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, \d+ 3xx, (\d+) 4xx, (\d+) 5xx$`)
	h2Rate     = regexp.MustCompile(`(?m)^finished in .*, ([0-9.]+) req/s`)
)

// readH2load takes the tally from what it says. It does not know percentiles.
func readH2load(out []byte) (wrk.Tally, error) {
	requests, status, rate := h2Requests.FindSubmatch(out), h2Status.FindSubmatch(out), h2Rate.FindSubmatch(out)
	if requests == nil || status == nil || rate == nil {
		return wrk.Tally{}, fmt.Errorf("h2load says something else: %s", out)
	}
	number := func(b []byte) int64 {
		n, _ := strconv.ParseInt(string(b), 10, 64) // digits
		return n
	}
	perSecond, err := strconv.ParseFloat(string(rate[1]), 64)
	done := number(requests[1])
	if err != nil || perSecond <= 0 || done == 0 {
		return wrk.Tally{}, fmt.Errorf("h2load counted nothing: %s", out)
	}
	return wrk.Tally{
		Requests: done,
		Micros:   int64(float64(done) / perSecond * 1e6),
		Status:   number(status[2]) + number(status[3]),
		Socket:   number(requests[4]) + number(requests[5]),
	}, nil
}
