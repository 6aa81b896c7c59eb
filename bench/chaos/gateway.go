package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// What is asked for, and the rules it is held to.
const (
	hotPath    = "/hot"    // 100/s, asked for far more than that
	hourPath   = "/hour"   // 1000 an hour, half of it used before the fault
	openPath   = "/open"   // on_store_failure: allow
	closedPath = "/closed" // on_store_failure: deny

	hotRate = 100
	hourMax = 1000

	deadline = 25 * time.Millisecond
)

const rulesText = `version: 1
rules:
  - { name: hot, match: GET /hot, per: everyone, limits: { rate: 100/second, algorithm: token_bucket }, on_store_failure: local }
  - { name: hour, match: GET /hour, per: everyone, limits: { rate: 1000/hour, algorithm: sliding_window }, on_store_failure: local }
  - { name: open, match: GET /open, per: everyone, limits: 1000/second, on_store_failure: allow }
  - { name: closed, match: GET /closed, per: everyone, limits: 1000/second, on_store_failure: deny }
`

// logRules has the rule hour counted by a log, which needs commands that no other does.
var logRules = strings.Replace(rulesText, "algorithm: sliding_window", "algorithm: sliding_log, count_rejected: true", 1)

const configText = `rules: rules.yaml
listen: { gateway: %q, admin: %q }
upstreams: [%q]
store: { %s, deadline: %s }
log: { access: stdout, format: json }
drain: 1s
`

// node is a gateway: a process of its own.
type node struct {
	gateway, admin, probe string // URLs
	log                   string
	process               *os.Process   // the successor's, after a hand-over
	ended                 chan struct{} // closed when the process that the rig started has ended
}

// local asks nodes about themselves, over connections of their own: none is left to be
// counted.
var local = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// startNode starts a gateway. redis is a URL, or the text of store.shards.
func (s *stage) startNode(i int, redis, rules string, deadline time.Duration) *node {
	if !strings.HasPrefix(redis, shardsField) {
		redis = fmt.Sprintf("redis: %q", redis)
	}
	dir := filepath.Join(s.dir, fmt.Sprint("node", i))
	s.must(os.Mkdir(dir, 0o700))
	addresses := freeAddresses(s, 3)
	s.must(os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	config := filepath.Join(dir, "tidegate.yaml")
	s.must(os.WriteFile(config, fmt.Appendf(nil, configText, addresses[0], addresses[1], s.upstream.url, redis, deadline), 0o600))
	n := &node{
		gateway: "http://" + addresses[0], admin: "http://" + addresses[1], probe: "http://" + addresses[2],
		log: filepath.Join(dir, "log"),
	}
	s.launch(n, nodeArgs(config, addresses[2])...)
	return n
}

// launch runs this program again, as n.
func (s *stage) launch(n *node, args ...string) {
	self, err := os.Executable()
	s.must(err)
	out, err := os.Create(n.log)
	s.must(err)
	defer out.Close()
	cmd := exec.Command(self, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(n.log), out, out
	s.must(cmd.Start())
	n.process, n.ended = cmd.Process, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(n.ended)
	}()
	s.Cleanup(n.end)
}

// end ends the node, or the last of its successors.
func (n *node) end() {
	_ = n.process.Signal(syscall.SIGTERM)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n.process.Signal(syscall.Signal(0)) != nil {
			return
		}
	}
	_ = n.process.Kill()
}

// freeAddresses are some on loopback that nobody listens on right now.
func freeAddresses(s *stage, n int) []string {
	var all []string
	for len(all) < n {
		address, err := daemon.FreeAddress()
		s.must(err)
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all
}

// await returns when the node and its store are well and all instances are known.
func (n *node) await(ctx context.Context, instances int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		h, err := n.health(ctx)
		if err == nil && h.Status == "ok" && h.Instances == instances {
			return nil
		}
		select {
		case <-n.ended:
			return n.failed("it has ended")
		case <-ctx.Done():
			return n.failed(fmt.Sprintf("%+v, %v", h, err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (n *node) failed(why string) error {
	printed, _ := os.ReadFile(n.log)
	return fmt.Errorf("a node does not come up: %s; it said:\n%s", why, bytes.TrimSpace(printed[max(0, len(printed)-2000):]))
}

// healthReply is what a node says of its store.
type healthReply struct {
	Status    string `json:"status"`
	Why       string `json:"why"`
	Instances int    `json:"instances"`
}

func (n *node) health(ctx context.Context) (h healthReply, err error) {
	return h, getJSON(ctx, n.admin+"/healthz", &h)
}

// figures are those of the probe, since they were last asked for.
func (n *node) figures(ctx context.Context, memory bool) (f figures, err error) {
	url := n.probe
	if memory {
		url += "?memory"
	}
	return f, getJSON(ctx, url, &f)
}

func getJSON(ctx context.Context, url string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := local.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(to)
}
