package gateway

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// A client that leaves frees its slot, and the upstream is told.
func TestClientLeaves(t *testing.T) {
	var o tries
	var atUpstream, most atomic.Int64
	entered, left := make(chan bool, 1), make(chan bool, 1)
	g := start(t, Options{
		Gate: gateOf(t, `
version: 1
rules:
  - { name: one, match: /slow, per: everyone, concurrency: { slots: 1, lease: 30s } }
`),
		Upstreams: []*url.URL{serve(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Quick") != "" {
				return
			}
			entered <- true
			<-r.Context().Done()
			left <- true
		})},
		Observer: &o,
		Inflight: func(delta int) { most.Store(max(most.Load(), atUpstream.Add(int64(delta)))) },
	}, nil)
	ctx, leave := context.WithCancel(t.Context())
	r := newRequest(t, http.MethodGet, g.url+"/slow", nil).WithContext(ctx)
	done := make(chan error, 1)
	go func() {
		res, err := client.Do(r)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	<-entered
	if res, _ := get(t, g.url+"/slow"); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s while the slot is taken", res.Status)
	}
	leave()
	if err := <-done; err == nil {
		t.Error("the client got an answer")
	}
	select {
	case <-left:
	case <-time.After(30 * time.Second):
		t.Fatal("the upstream was not told")
	}
	// From here on the next may come while the upstream is still being told.
	if most.Load() != 1 {
		t.Errorf("told of %d at the upstream at once, want 1", most.Load())
	}
	soon(t, "the slot is free", func() bool {
		r := newRequest(t, http.MethodGet, g.url+"/slow", nil)
		r.Header.Set("Quick", "1")
		res, _ := do(t, r)
		return res.StatusCode == http.StatusOK
	})
	soon(t, "it is recorded", func() bool {
		_, records := o.got()
		return slices.ContainsFunc(records, func(r accesslog.Record) bool { return r.Status == statusClientGone && r.Cut })
	})
	if states := g.Upstreams(); !states[0].Usable || states[0].InFlight != 0 {
		t.Errorf("%+v: who leaves says nothing about the upstream", states)
	}
	if atUpstream.Load() != 0 {
		t.Errorf("told of %d at the upstream at the end, want 0", atUpstream.Load())
	}
}

const lineRules = `
version: 1
rules:
  - name: line
    match: /
    per: everyone
    limits: { rate: 4/second, algorithm: leaky_bucket }
    queue: { places: 10, max_wait: 5s }
`

// A request whose client leaves the queue does not reach the upstream; the others do.
func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, 50*time.Millisecond, func(t testing.TB) {
		var o tries
		reached := make(chan string, 10)
		g := start(t, Options{
			Gate:      gateOf(t, lineRules),
			Upstreams: []*url.URL{serve(t, func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path })},
			Observer:  &o,
		}, nil)
		get(t, g.url+"/1")
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan bool)
		go func() {
			defer close(gone)
			if res, err := client.Do(newRequest(t, http.MethodGet, g.url+"/2", nil).WithContext(ctx)); err == nil {
				res.Body.Close()
				t.Error("the second was answered before its turn")
			}
		}()
		soon(t, "the second is queued", func() bool { return g.InFlight() == 1 })
		leave()
		<-gone
		soon(t, "it has left", func() bool { return g.InFlight() == 0 })
		get(t, g.url+"/3")
		if a, b := <-reached, <-reached; a != "/1" || b != "/3" {
			t.Errorf("the upstream got %s and %s", a, b)
		}
		soon(t, "all is told", func() bool { _, done := o.got(); return len(done) == 3 })
		_, done := o.got()
		for _, r := range done {
			if r.Path == "/3" && (r.Decision != "waited" || r.Wait < 50*time.Millisecond || r.Rule != "line") {
				t.Errorf("the third: %+v", r)
			}
			if r.Path == "/2" && (r.Status != statusClientGone || r.Upstream != "" || r.Decision != "canceled" || r.DecidedBy != "" || r.Rule != "line") {
				t.Errorf("the second: %+v", r)
			}
		}
	})
}
