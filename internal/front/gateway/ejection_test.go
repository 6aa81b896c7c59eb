package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whatever fails, and with any number of upstreams, one stays in use: requests get its
// response, or are told that it did not answer, and never that there is none. If one
// upstream answers, all requests are answered.
func TestLastUpstreamIsNeverEjected(t *testing.T) {
	t.Parallel()
	release := make(chan bool)
	t.Cleanup(func() { close(release) })
	kinds := map[string]func(*testing.T) *url.URL{
		"dead": func(t *testing.T) *url.URL { return deadURL(t) },
		"slow": func(t *testing.T) *url.URL {
			return serve(t, func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-release:
				case <-r.Context().Done():
				}
			})
		},
	}
	for kind, broken := range kinds {
		for n := 1; n <= 4; n++ {
			for _, alive := range []int{0, 1} {
				t.Run(fmt.Sprintf("%d %s, %d alive", n, kind, alive), func(t *testing.T) {
					t.Parallel()
					var upstreams []*url.URL
					for range n {
						upstreams = append(upstreams, broken(t))
					}
					for range alive {
						upstreams = append(upstreams, serve(t, hello))
					}
					timeout := time.Minute
					if kind == "slow" { // each request to these is waited for
						timeout = 20 * time.Millisecond
					}
					g := start(t, Options{Upstreams: upstreams, Limits: Limits{Upstream: timeout}}, nil)
					statuses := map[int]int{}
					for range 25 {
						res, _ := get(t, g.url)
						statuses[res.StatusCode]++
					}
					for range 10 { // by now, whoever is dead is ejected
						if res, _ := get(t, g.url); alive > 0 && kind == "dead" && res.StatusCode != http.StatusOK {
							t.Errorf("%s, and one is alive", res.Status)
						}
					}
					usable := 0
					for _, u := range g.Upstreams() {
						if u.Usable {
							usable++
						}
					}
					if statuses[http.StatusServiceUnavailable] > 0 || usable < 1 {
						t.Errorf("%d can be used; answers %v", usable, statuses)
					}
				})
			}
		}
	}
}

// Requests that time out do not harm those that do not.
func TestSlowRequestsEjectNobody(t *testing.T) {
	t.Parallel()
	const upstreamTimeout = 500 * time.Millisecond
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			testdep.Undisturbed(t, upstreamTimeout/4, func(t testing.TB) {
				var ejected atomic.Int64
				var upstreams []*url.URL
				for range n {
					upstreams = append(upstreams, serve(t, func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/slow" {
							<-r.Context().Done()
							return
						}
						_, _ = io.WriteString(w, "hello")
					}))
				}
				g := start(t, Options{
					Upstreams: upstreams, Limits: Limits{Upstream: upstreamTimeout},
					Usable: func(_ string, usable bool) {
						if !usable {
							ejected.Add(1)
						}
					},
				}, nil)
				var attackers sync.WaitGroup
				done := make(chan bool)
				for range 4 * n {
					attackers.Go(func() {
						for range 3 {
							if res, _ := get(t, g.url+"/slow"); res.StatusCode != http.StatusGatewayTimeout {
								t.Errorf("a slow request: %s", res.Status)
							}
						}
					})
				}
				go func() { attackers.Wait(); close(done) }()
				for honest := 0; ; honest++ {
					select {
					case <-done:
						if n == 1 && ejected.Load() > 0 {
							t.Errorf("%d times the only upstream was ejected", ejected.Load())
						}
						return
					default:
					}
					if res, _ := get(t, g.url); res.StatusCode != http.StatusOK {
						t.Fatalf("honest request %d: %s", honest, res.Status)
					}
				}
			})
		})
	}
}

// A failure of this machine is not the upstream's: idle connections are closed, and if that
// does not help, the client is told to retry.
func TestLocalFailuresAreNotTheUpstreams(t *testing.T) {
	for _, number := range localFailures {
		t.Run(number.Error(), func(t *testing.T) {
			g := start(t, Options{Upstreams: []*url.URL{serve(t, hello), serve(t, hello)}}, nil)
			fault := &connectError{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", number)}}
			for _, u := range g.pool {
				fail := func(context.Context, string, string) (net.Conn, error) { return nil, fault }
				u.transport.DialContext, u.direct.dial = fail, fail
			}
			for i := range 20 {
				method := []string{http.MethodGet, http.MethodPost}[i%2]
				res, _ := do(t, newRequest(t, method, g.url, nil))
				if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" {
					t.Fatalf("%s: %s, Retry-After %q", method, res.Status, res.Header.Get("Retry-After"))
				}
			}
			for _, u := range g.Upstreams() {
				if !u.Usable {
					t.Errorf("%s is ejected", u.URL)
				}
			}
		})
	}
	f := func(err error, want bool) {
		t.Helper()
		if isLocalFailure(err) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
	f(nil, false)
	f(&connectError{&net.DNSError{IsTimeout: true}}, true)
	f(&connectError{&net.DNSError{IsTemporary: true}}, true)
	f(&connectError{&net.DNSError{IsNotFound: true}}, false)
	f(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false)
	f(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, false)
	f(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, false)
	f(errors.New("anything"), false)
}

// An upstream that is ejected is used again at once when the others are found to be down.
func TestOnlyOtherIsDown(t *testing.T) {
	now := time.Now()
	a, b := &upstream{health: health{threshold: 1}}, &upstream{health: health{threshold: 1}}
	p := pool{a, b}
	if pause := a.health.failed(now, p.isLast(a)); pause <= 0 {
		t.Fatal("it is not ejected, and there is another")
	}
	if p.pick(now, nil) != b {
		t.Error("it is used while there is another")
	}
	if pause := b.health.failed(now, p.isLast(b)); pause != 0 || !b.health.usable(now) {
		t.Error("the last is ejected")
	}
	b.health.probed(false)
	if got := p.pick(now, nil); got != a {
		t.Errorf("%v is used", got)
	}
	a.health.probed(false)
	if got := p.pick(now, nil); got != nil {
		t.Errorf("%v is used though both were asked and are down", got)
	}
}
