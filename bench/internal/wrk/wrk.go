// Package wrk runs the load generator of that name: keeps connections busy for some seconds
// and counts the answers. Start with [Find].
package wrk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// What a run has, unless another number of connections is asked for.
const (
	Connections = 64
	Threads     = 2
)

// script prints what came out as JSON. It has no part in the requests.
const script = `done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\n{"requests":%d,"micros":%d,"status":%d,"socket":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
`

// Tally is what the load generator counted in one heat.
type Tally struct {
	Requests int64 // answered
	Micros   int64 // that it took
	Status   int64 // answers of 400 and above
	Socket   int64 // requests without an answer
	P50, P99 int64 // microseconds
}

// Rate is requests per second.
func (t Tally) Rate() float64 { return float64(t.Requests) / (float64(t.Micros) / 1e6) }

// Program is the load generator. Its requests are a GET without a body, unless another
// script says otherwise.
type Program struct {
	program, script string
	connections     int
	headers         []string
}

// Find looks for it; scripts are written into dir.
func Find(dir string) (Program, error) {
	program, err := exec.LookPath("wrk")
	if err != nil {
		return Program{}, fmt.Errorf("the load generator is missing: run scripts/bench-deps.sh as root (%w)", err)
	}
	w := Program{program: program, script: filepath.Join(dir, "wrk.lua"), connections: Connections}
	return w, os.WriteFile(w.script, []byte(script), 0o600)
}

// With returns a Program whose requests are what setup says in Lua, before the load begins.
func (w Program) With(name, setup string) (Program, error) {
	w.script = filepath.Join(filepath.Dir(w.script), name+".lua")
	return w, os.WriteFile(w.script, []byte(setup+script), 0o600)
}

// Over returns a Program that keeps so many connections.
func (w Program) Over(connections int) Program {
	w.connections = connections
	return w
}

// Sending returns a Program whose requests also have that header, as in "Connection: close".
func (w Program) Sending(header string) Program {
	w.headers = append(slices.Clip(w.headers), header)
	return w
}

// Version is in the first line of the help, which is not thought of as a success.
func (w Program) Version() string {
	out, _ := exec.Command(w.program, "-v").CombinedOutput()
	fields := bytes.Fields(out)
	if len(fields) < 2 {
		return "wrk"
	}
	return fmt.Sprintf("%s %s", fields[0], fields[1])
}

// Run asks for url for about d.
func (w Program) Run(ctx context.Context, url string, d time.Duration) (Tally, error) {
	ctx, cancel := context.WithTimeout(ctx, d+20*time.Second)
	defer cancel()
	args := []string{"-c", strconv.Itoa(w.connections), "-t", strconv.Itoa(Threads), "-d", fmt.Sprintf("%ds", int(d.Seconds())), "--timeout", "10s", "-s", w.script}
	for _, header := range w.headers {
		args = append(args, "-H", header)
	}
	cmd := exec.CommandContext(ctx, w.program, append(args, url)...)
	cmd.SysProcAttr = daemon.EndWithUs()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Tally{}, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return readTally(out)
}

// readTally takes the last line.
func readTally(out []byte) (Tally, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var t Tally
	if err := json.Unmarshal(lines[len(lines)-1], &t); err != nil || t.Requests == 0 || t.Micros <= 0 {
		return Tally{}, fmt.Errorf("wrk counted nothing: %s", out)
	}
	return t, nil
}
