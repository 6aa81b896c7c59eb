package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const (
	costRounds   = 31
	costRequests = 20_000 // a round
)

// cost is what a request takes in this process, without any network: what the
// limit adds would drown in what sockets cost.
type cost struct{ bare, limited, allocs []float64 } // nanoseconds, and allocations that the limit adds

func (c *cost) add(o cost) {
	c.bare, c.limited, c.allocs = append(c.bare, o.bare...), append(c.limited, o.limited...), append(c.allocs, o.allocs...)
}

// added returns the difference within the median of the quiet rounds, in nanoseconds: CPU time
// leaves out what neighbours take of a core, but not what they take of its caches. Which
// quarter of the rounds was quiet is for the handler without the limit to say.
func (c cost) added() float64 {
	quiet := slices.Sorted(slices.Values(c.bare))[len(c.bare)/4]
	var added []float64
	for i, bare := range c.bare {
		if bare <= quiet {
			added = append(added, c.limited[i]-bare)
		}
	}
	return report.Median(added)
}

// measureLimit serves the same answer with and without the gate that the gateway
// puts before its proxy: the rule is matched, the client found, the request
// counted, and the header lines set and written.
func measureLimit(ctx context.Context) (cost, error) {
	set, err := rules.Parse("rules.yaml", []byte(rulesText(plenty)), rules.Config{})
	if err != nil {
		return cost{}, err
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = io.WriteString(w, answer)
	})
	limited := httplimit.Gate(newGate(set))(bare)

	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var c cost
	for round := range costRounds + 1 {
		if err := context.Cause(ctx); err != nil {
			return cost{}, err
		}
		if round%10 == 0 {
			rig.Progress("the limit alone: round %d of %d", round, costRounds)
		}
		runtime.GC()
		without, few, err := timed(bare, false)
		if err != nil {
			return cost{}, err
		}
		with, many, err := timed(limited, true)
		if err != nil {
			return cost{}, err
		}
		if round > 0 { // the first is the warm-up
			c.bare, c.limited, c.allocs = append(c.bare, without), append(c.limited, with), append(c.allocs, many-few)
		}
	}
	return c, nil
}

// newGate is wired as tidegate serve does: what is counted for the metrics is a
// part of the cost.
func newGate(set *rules.Set) *tidegate.Gate {
	metrics := telemetry.New(prometheus.NewRegistry(), "memory")
	metrics.SetRules(set.Rules(), set.Limits())
	store := queue.New(chain.Adapt(memory.New())).Time(metrics.Takes())
	return tidegate.NewGate(metrics.Matcher(rules.NewLive(set)), store).Observe(metrics.Observe)
}

// timed measures by the thread's CPU time, which stands still while a neighbour
// has the core.
func timed(h http.Handler, counted bool) (nanos, allocs float64, err error) {
	r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+loadPath, nil)
	if err != nil {
		return 0, 0, err
	}
	r.RemoteAddr, r.RequestURI = "127.0.0.1:54321", loadPath
	w := &writer{header: make(http.Header)}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := process.CPUTime()
	for range costRequests {
		w.reset()
		h.ServeHTTP(w, r)
	}
	took := process.CPUTime() - start
	runtime.ReadMemStats(&after)
	if _, told := w.header["Ratelimit"]; w.ok != costRequests || told != counted {
		return 0, 0, fmt.Errorf("the limit alone: %d of %d requests were admitted, the last with header %v, so that the comparison is void", w.ok, costRequests, w.header)
	}
	return float64(took) / costRequests, float64(after.Mallocs-before.Mallocs) / costRequests, nil
}

// writer writes the header as net/http does, to nowhere.
type writer struct {
	header http.Header
	wrote  bool
	ok     int
}

func (w *writer) reset() {
	clear(w.header)
	w.wrote = false
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	if status == http.StatusOK {
		w.ok++
	}
	_ = w.header.Write(io.Discard)
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), nil
}

func costTable(es entrants, c cost) report.Table {
	t := report.Table{
		Title: "What the limit adds",
		Note: "A token bucket for every client address, and the header lines that tell it. In process: thread CPU time of the handler chain, " +
			"header lines written, no network. Over loopback: the gateway's CPU time with one rule and without, from the race above, where noise alone makes a difference of microseconds.",
		Head: []string{"", "without", "with", "added", "allocations added"},
	}
	t.Add("in process, ns", fmt.Sprintf("%.0f", report.Median(c.bare)), fmt.Sprintf("%.0f", report.Median(c.limited)),
		fmt.Sprintf("%.0f", c.added()), fmt.Sprintf("%.1f", report.Median(c.allocs)))
	without, with := es[gatewayBare].micros, es[gatewayLimit].micros
	var added []float64
	for i := range without {
		added = append(added, with[i]-without[i])
	}
	t.Add("over loopback, µs", fmt.Sprintf("%.1f", report.Median(without)), fmt.Sprintf("%.1f", report.Median(with)),
		fmt.Sprintf("%.1f", report.Median(added)), "")
	return t
}
