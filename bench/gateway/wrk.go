package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	connections = 64
	threads     = 2
	loadPath    = "/users/42"
)

// wrkScript prints what came out as JSON. It has no part in the requests.
const wrkScript = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\n{"requests":%d,"micros":%d,"status":%d,"socket":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
`

// tally is what the load generator counted in one heat.
type tally struct {
	Requests int64 // answered
	Micros   int64 // that it took
	Status   int64 // answers of 400 and above
	Socket   int64 // requests without an answer
	P50, P99 int64 // microseconds
}

func (t tally) rate() float64 { return float64(t.Requests) / (float64(t.Micros) / 1e6) }

// wrk is the load generator of that name.
type wrk struct{ program, script string }

func findWrk(dir string) (wrk, error) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return wrk{}, fmt.Errorf("the load generator is missing: run scripts/bench-deps.sh as root (%w)", err)
	}
	w := wrk{program, filepath.Join(dir, "wrk.lua")}
	return w, os.WriteFile(w.script, []byte(wrkScript), 0o600)
}

// version is in the first line of the help, which is not thought of as a success.
func (w wrk) version() string {
	out, _ := exec.Command(w.program, "-v").CombinedOutput()
	fields := bytes.Fields(out)
	if len(fields) < 2 {
		return "wrk"
	}
	return fmt.Sprintf("%s %s", fields[0], fields[1])
}

// run asks address for about d.
func (w wrk) run(ctx context.Context, address string, d time.Duration) (tally, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, "-c", strconv.Itoa(connections), "-t", strconv.Itoa(threads),
		"-d", fmt.Sprintf("%ds", int(d.Seconds())), "--timeout", "10s", "-s", w.script, "http://"+address+loadPath)
	cmd.SysProcAttr = endWithUs()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return tally{}, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return readTally(out)
}

// readTally takes the last line.
func readTally(out []byte) (tally, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var t tally
	if err := json.Unmarshal(lines[len(lines)-1], &t); err != nil || t.Requests == 0 || t.Micros <= 0 {
		return tally{}, fmt.Errorf("wrk counted nothing: %s", out)
	}
	return t, nil
}
