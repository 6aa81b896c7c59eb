package httplimit

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// gateSlots is a server behind a gate whose rules hold each client address to
// one slot and a hundred requests an hour.
type gateSlots struct {
	*httptest.Server
	lim *tidegate.Limiter // on the same slots
}

func newGateSlots(t *testing.T, handler http.HandlerFunc) gateSlots {
	gated, lim := gateOfSlots(handler)
	srv := httptest.NewServer(gated)
	t.Cleanup(srv.Close)
	srv.Client().Timeout = 5 * time.Second
	return gateSlots{srv, lim}
}

func gateOfSlots(handler http.HandlerFunc) (gated http.Handler, lim *tidegate.Limiter) {
	store := memory.New()
	slots, hour := tidegate.Slots(1, time.Minute), tidegate.PerHour(100)
	gate := tidegate.NewGate(matchFunc(func(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
		ip, _ := r.Value("ip")
		return append(dst, tidegate.Check{Key: ip, Limit: hour, Cost: 1}, tidegate.Check{Key: ip, Limit: slots, Cost: 1})
	}), store)
	return Gate(gate)(handler), tidegate.New(store, slots)
}

func (s gateSlots) free() bool { return s.lim.Peek(context.Background(), "127.0.0.1").OK }

func (s gateSlots) wantStatus(t *testing.T, want int) {
	t.Helper()
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("status %d, want %d", resp.StatusCode, want)
	}
}

func TestTrap21GateHoldsASlotWhileTheHandlerRuns(t *testing.T) {
	running, finish := make(chan bool), make(chan bool)
	srv := newGateSlots(t, func(http.ResponseWriter, *http.Request) {
		running <- true
		<-finish
	})
	first := make(chan error)
	go func() {
		resp, err := srv.Client().Get(srv.URL)
		if err == nil {
			resp.Body.Close()
		}
		first <- err
	}()
	<-running
	srv.wantStatus(t, 429)
	if srv.free() {
		t.Error("the slot is free while the handler runs")
	}
	close(finish)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if !srv.free() { // at once: before the client has the answer
		t.Error("the slot is taken after the answer")
	}
}

func TestTrap21GateFreesTheSlotOfAPanickingHandler(t *testing.T) {
	srv := newGateSlots(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for range 3 {
		if resp, err := srv.Client().Get(srv.URL); err == nil {
			t.Errorf("status %d, want a cut connection", resp.StatusCode)
			resp.Body.Close()
		}
		if !srv.free() {
			t.Fatal("the slot is taken")
		}
	}
}

func TestTrap21GateFreesTheSlotOfAClientThatLeft(t *testing.T) {
	running, stuck := make(chan bool, 1), make(chan bool)
	srv := newGateSlots(t, func(w http.ResponseWriter, _ *http.Request) {
		running <- true
		<-stuck // a handler that does not look whether its client is there
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	go func() {
		<-running
		cancel()
	}()
	if resp, err := srv.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Error("the client did not leave")
	}
	waitFor(t, "the slot to come free", srv.free)
	close(stuck)
	srv.Close() // waits for the handler to return, which must not free it again
	if d := srv.lim.Peek(t.Context(), "127.0.0.1"); d.Remaining != 1 {
		t.Errorf("%d slots are free, want 1", d.Remaining)
	}
}

func TestTrap21GateKeepsTheSlotOfAHijackedConnectionUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hijacked, finish := make(chan context.Context, 1), make(chan bool)
		closes := sync.OnceFunc(func() { close(finish) })
		defer closes()
		gated, lim := gateOfSlots(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				defer conn.Close()
				<-finish
				_, _ = io.WriteString(conn, "goodbye")
			}()
			hijacked <- r.Context()
		})
		network, client := servePipes(t, gated)
		free := func() bool { return lim.Peek(t.Context(), "127.0.0.1").OK }
		conn, err := network.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		<-(<-hijacked).Done()
		// The handler is back and its context over; the connection is not.
		synctest.Wait() // for whoever would free it now
		if free() {
			t.Fatal("the slot is free while the connection is open")
		}
		resp, err := client.Get("http://x")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 429 {
			t.Errorf("status %d while the slot is held", resp.StatusCode)
		}
		closes()
		if got, _ := io.ReadAll(conn); string(got) != "goodbye" {
			t.Errorf("the connection said %q", got)
		}
		synctest.Wait()
		if !free() {
			t.Error("the slot is taken after the connection is closed")
		}
	})
}

// A request that waits its turn in a bucket holds its slot meanwhile, and frees
// it when its client does not wait as long.
func TestTrap21GateFreesTheSlotOfAWaiterThatLeft(t *testing.T) {
	store, slots := memory.New(), tidegate.Slots(1, time.Minute)
	line := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	gate := tidegate.NewGate(matchFunc(func(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
		return append(dst, tidegate.Check{Key: "all", Limit: line, Cost: 1, MaxWait: time.Hour},
			tidegate.Check{Key: "all", Limit: slots, Cost: 1})
	}), store)
	served := 0
	h := Gate(gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	get(h)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	get(h, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if served != 1 {
		t.Errorf("%d were served, want the first alone", served)
	}
	waitFor(t, "the slot to come free", func() bool { return tidegate.New(store, slots).Peek(t.Context(), "all").OK })
}
