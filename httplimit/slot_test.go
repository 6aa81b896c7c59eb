package httplimit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// slotServer serves handler behind a limit of one slot, over a real connection.
func slotServer(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, *slotStore) {
	store := new(slotStore)
	lim := tidegate.New(store, tidegate.Slots(1, time.Minute))
	srv := httptest.NewUnstartedServer(Limit(lim, IP())(handler))
	srv.EnableHTTP2 = http2
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	srv.Client().Timeout = 5 * time.Second
	return srv, store
}

func TestSlotsAreHeldWhileTheHandlerRuns(t *testing.T) {
	running, finish := make(chan bool), make(chan bool)
	srv, store := slotServer(t, false, func(http.ResponseWriter, *http.Request) {
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
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" ||
		resp.Header.Get("RateLimit") != `"default";r=0` ||
		resp.Header.Get("RateLimit-Policy") != `"default";q=1;qu="concurrent-requests"` {
		t.Errorf("the second: %d %v", resp.StatusCode, resp.Header)
	}
	close(finish)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := store.inUse(); n != 0 { // at once: before the client has the answer
		t.Errorf("%d slots are in use after the answer", n)
	}
}

func TestTrap21PanickingHandlerFreesItsSlot(t *testing.T) {
	srv, store := slotServer(t, false, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for range 3 {
		if resp, err := srv.Client().Get(srv.URL); err == nil {
			t.Errorf("status %d, want a cut connection", resp.StatusCode)
			resp.Body.Close()
		}
		if n := store.inUse(); n != 0 {
			t.Fatalf("%d slots are in use", n)
		}
	}
}

func TestTrap21CancelledRequestFreesItsSlot(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		stuck, running := make(chan bool), make(chan bool, 1)
		unstick := sync.OnceFunc(func() { close(stuck) })
		srv, store := slotServer(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			running <- true
			<-stuck // a handler that does not look whether its client is there
		})
		t.Cleanup(unstick)
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 2}[http2]; resp.ProtoMajor != want {
			t.Fatalf("HTTP/%d", resp.ProtoMajor)
		}
		<-running
		if store.inUse() != 1 {
			t.Errorf("%d slots are in use", store.inUse())
		}
		cancel()
		resp.Body.Close()
		waitFor(t, "the slot to come free", func() bool { return store.inUse() == 0 })
		unstick()
		srv.Close() // waits for the handler to return, which must not free it again
		if n := store.inUse(); n != 0 {
			t.Errorf("%d slots are in use", n)
		}
	}
}

func TestTrap21RequestCancelledBeforeItsTurnFreesItsSlot(t *testing.T) {
	store := new(slotStore)
	lim := tidegate.New(store, tidegate.Slots(1, time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		get(Limit(lim, IP())(hello), func(r *http.Request) { *r = *r.WithContext(ctx) })
		waitFor(t, "the slot to come free", func() bool { return store.inUse() == 0 })
	}
}

func TestTrap21PanickingObserverFreesTheSlot(t *testing.T) {
	store := new(slotStore)
	o := Options{OnDecision: func(*http.Request, tidegate.Decision) { panic("observer") }}
	func() {
		defer func() { _ = recover() }()
		get(o.Limit(tidegate.New(store, tidegate.Slots(1, time.Minute)), IP())(hello))
	}()
	if n := store.inUse(); n != 0 {
		t.Errorf("%d slots are in use", n)
	}
}

func TestTrap21HijackedConnectionHoldsItsSlotUntilClosed(t *testing.T) {
	hijack := map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"type assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return w.(http.Hijacker).Hijack()
		},
		"response controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	}
	for name, take := range hijack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, finish := make(chan context.Context, 2), make(chan bool)
				closes := sync.OnceFunc(func() { close(finish) })
				defer closes()
				store := new(slotStore)
				lim := tidegate.New(store, tidegate.Slots(1, time.Minute))
				network, client := servePipes(t, Limit(lim, IP())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, _, err := take(w)
					asked <- r.Context()
					if err != nil {
						t.Error(err)
						return
					}
					go func() {
						defer conn.Close()
						<-finish
						_, _ = io.WriteString(conn, "goodbye")
					}()
				})))
				conn, err := network.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				<-(<-asked).Done()
				// The handler is back and its context over; the connection is not.
				synctest.Wait() // for whoever would free it now
				if n := store.inUse(); n != 1 {
					t.Fatalf("%d slots are in use while the connection is open", n)
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
				if n := store.inUse(); n != 0 {
					t.Errorf("%d slots are in use after the connection is closed", n)
				}
			})
		})
	}
}
