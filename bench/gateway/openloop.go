package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// openLoop asks at a fixed rate, whether answers come or not. The time of an answer counts from
// the moment at which its request was due, so that a server which stands still does not hide
// the requests that it kept waiting.
type openLoop struct {
	rate  float64 // requests per second
	lasts time.Duration
}

// run asks a server and returns how long the answers took, in order.
func (o openLoop) run(ctx context.Context, address string) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, o.lasts+20*time.Second)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  []time.Duration
		fail error
	)
	every := time.Duration(float64(wrk.Connections) / o.rate * float64(time.Second))
	start := time.Now().Add(10 * time.Millisecond)
	for i := range wrk.Connections {
		wg.Go(func() {
			first := start.Add(every * time.Duration(i) / wrk.Connections)
			took, err := askOnTime(ctx, address, first, every, int(o.lasts/every))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if fail == nil {
				fail = err
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all, fail
}

// askOnTime sends n requests over one connection, each when it is due or as soon as the one
// before is answered.
func askOnTime(ctx context.Context, address string, first time.Time, every time.Duration, n int) ([]time.Duration, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", loadPath, address)
	in := bufio.NewReader(conn)
	took := make([]time.Duration, 0, n)
	for i := range n {
		due := first.Add(every * time.Duration(i))
		time.Sleep(time.Until(due))
		if _, err := conn.Write(request); err != nil {
			return took, err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return took, err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			return took, fmt.Errorf("%s answers %s, %v", address, res.Status, err)
		}
		took = append(took, time.Since(due))
	}
	return took, nil
}

// delay is what an entrant did at a fixed rate, in milliseconds, of each round.
type delay struct{ p50, p99, p999 []float64 }

func (d *delay) truncate(rounds int) {
	d.p50, d.p99, d.p999 = d.p50[:rounds], d.p99[:rounds], d.p999[:rounds]
}

// add notes the answers of a round, which are in order.
func (d *delay) add(all []time.Duration) {
	at := func(share float64) float64 {
		return float64(all[int(share*float64(len(all)-1))]) / float64(time.Millisecond)
	}
	d.p50, d.p99, d.p999 = append(d.p50, at(0.5)), append(d.p99, at(0.99)), append(d.p999, at(0.999))
}

// steady are those who are asked at a fixed rate.
var steady = []int{nginxProxy, gatewayLimit}

// halfLoad asks nginx and Tidegate in turns for half of what Tidegate can answer.
func halfLoad(ctx context.Context, es entrants, rounds int, lasts time.Duration) (rate float64, ds []delay, err error) {
	rate = report.Median(es[gatewayLimit].rates) / 2
	ds = make([]delay, len(steady))
	for round := range rounds {
		rig.Progress("half of the load: round %d of %d", round+1, rounds)
		once := func() error {
			for i, e := range steady {
				all, err := openLoop{rate, lasts}.run(ctx, es[e].server.Address)
				if err != nil {
					return fmt.Errorf("%s: %w", es[e].name, err)
				}
				ds[i].add(all)
			}
			return nil
		}
		forget := func() {
			for i := range ds {
				ds[i].truncate(round)
			}
		}
		if err := process.Undisturbed(ctx, "half of the load", once, forget); err != nil {
			return 0, nil, err
		}
	}
	return rate, ds, nil
}

func delayTable(es entrants, rate float64, ds []delay) report.Table {
	t := report.Table{
		Title: "At half of the load",
		Note: fmt.Sprintf("%s requests a second, half of what Tidegate answers at most, over %d connections, whether answers come or not. "+
			"Times count from when a request was due, and include what the load generator oversleeps.", report.Thousands(int64(rate)), wrk.Connections),
		Head: []string{"", "p50 ms", "p99 ms", "p99.9 ms"},
	}
	for i, d := range ds {
		t.Add(es[steady[i]].name, fmt.Sprintf("%.2f", report.Median(d.p50)), fmt.Sprintf("%.2f", report.Median(d.p99)), fmt.Sprintf("%.2f", report.Median(d.p999)))
	}
	return t
}
