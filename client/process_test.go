package client_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/client"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// instance says what a process of its own does: it calls URL under a limit that it shares with
// others by Redis, until the limit is used up for longer than a call waits.
type instance struct {
	Redis, URL, Name string
	Spec             tidegate.Spec
	Workers          int
}

// start starts an instance.
func (i instance) start(t testing.TB) *testdep.Program {
	t.Helper()
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	return testdep.Run(t, t.TempDir(), os.Args[0], "-test.run=^TestInstance$", "-test.timeout=10m", "instance", string(text))
}

// TestInstance is the process of an instance.
func TestInstance(t *testing.T) {
	if flag.Arg(0) != "instance" {
		return // not in that process: see instance.start
	}
	var i instance
	if err := json.Unmarshal([]byte(flag.Arg(1)), &i); err != nil {
		t.Fatal(err)
	}
	store, err := fleet.Open("redis://"+i.Redis, fleet.Options{Deadline: 2 * time.Second, OnStoreFailure: tidegate.FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p, err := client.NewProvider(client.ProviderOptions{
		Name: "api", Store: store, Limits: []*tidegate.Limit{tidegate.MustLimit(i.Spec)},
		Base: newProbe(&http.Transport{MaxIdleConnsPerHost: i.Workers}),
	})
	if err != nil {
		t.Fatal(err)
	}
	api := &http.Client{Transport: p.Transport()}
	var all sync.WaitGroup
	for range i.Workers {
		all.Go(func() {
			for {
				if _, err := i.call(api, "/"); errors.Is(err, client.ErrLimit) {
					return
				} else if err != nil {
					time.Sleep(rand.N(200 * time.Millisecond)) // as a program would that has more to do
				}
			}
		})
	}
	all.Wait()
	if _, err := i.call(http.DefaultClient, "/end"); err != nil {
		t.Error(err)
	}
}

// probe is a RoundTripper that tells the server when a request was sent, and for how long its process
// did not get to run before, so that the server can tell a busy machine from a client that misbehaves.
type probe struct {
	http.RoundTripper
	longest atomic.Int64 // since the last request
}

const stoodHeader, sentHeader = "X-Stood-Still", "X-Sent-At"

func newProbe(rt http.RoundTripper) *probe {
	p := &probe{RoundTripper: rt}
	go func() {
		const nap = 5 * time.Millisecond
		for before := time.Now(); ; {
			time.Sleep(nap)
			now := time.Now()
			stood := int64(now.Sub(before) - nap)
			before = now
			for old := p.longest.Load(); stood > old && !p.longest.CompareAndSwap(old, stood); old = p.longest.Load() {
			}
		}
	}()
	return p
}

func (p *probe) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set(stoodHeader, strconv.FormatInt(p.longest.Swap(0), 10))
	req.Header.Set(sentHeader, strconv.FormatInt(time.Now().UnixNano(), 10))
	return p.RoundTripper.RoundTrip(req)
}

func (i instance) call(api *http.Client, path string) (status int, err error) {
	req, err := http.NewRequest(http.MethodGet, i.URL+path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Instance", i.Name)
	res, err := api.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// server is somebody else's API in this process. It writes down what reaches it.
type server struct {
	addr    string
	handler http.Handler
	http    *http.Server

	mu       sync.Mutex
	arrivals []arrival
	ended    []string      // instances that are done
	refuse   time.Duration // the next request is refused for so long; 0 means it is not
	refused  time.Time     // when that happened
}

type arrival struct {
	at, sent time.Time
	instance string
	status   int
	stood    time.Duration // how long its process stood still since the request before
}

// newServer returns a server that lim holds to a limit.
func newServer(t testing.TB, lim *tidegate.Limiter) *server {
	t.Helper()
	s := &server{addr: "127.0.0.1:" + testdep.FreePort(t)}
	o := httplimit.Options{OnDecision: func(r *http.Request, d tidegate.Decision) {
		status := http.StatusOK
		if !d.OK {
			status = httplimit.Status(d)
		}
		s.note(r, status)
	}}
	everyone := func(*http.Request) (string, bool) { return "everyone", true }
	limited := o.Limit(lim, everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/end":
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, r.Header.Get("X-Instance"))
		case s.refuses(w):
			s.note(r, http.StatusTooManyRequests)
		default:
			limited.ServeHTTP(w, r)
		}
	})
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func (s *server) start(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.http = &http.Server{Handler: s.handler}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http)
}

// stop breaks all connections, and listens no more.
func (s *server) stop() { _ = s.http.Close() }

func (s *server) note(r *http.Request, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stood, _ := strconv.ParseInt(r.Header.Get(stoodHeader), 10, 64)
	sent, _ := strconv.ParseInt(r.Header.Get(sentHeader), 10, 64)
	s.arrivals = append(s.arrivals, arrival{time.Now(), time.Unix(0, sent), r.Header.Get("X-Instance"), status, time.Duration(stood)})
}

// refuses answers one request with the Retry-After that was ordered.
func (s *server) refuses(w http.ResponseWriter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == 0 {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(s.refuse/time.Second)))
	w.WriteHeader(http.StatusTooManyRequests)
	s.refuse, s.refused = 0, time.Now()
	return true
}

// since returns what arrived after an instant.
func (s *server) since(at time.Time) (all []arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arrivals {
		if a.at.After(at) {
			all = append(all, a)
		}
	}
	return all
}

// await waits until ok says so of what has arrived since an instant.
func (s *server) await(t testing.TB, what string, from time.Time, ok func(all []arrival) bool) {
	t.Helper()
	testdep.Eventually(t, what, func() bool { return ok(s.since(from)) })
}

// Three processes share 10,000 calls a day. One of them is killed and starts again. The API
// never sees more.
func TestBudgetOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("10,000 calls by three processes")
	}
	const budget, workers = 10_000, 8
	redis := testdep.Redis(t)
	s := newServer(t, tidegate.New(memory.New(), tidegate.PerHour(1_000_000)))
	spec := tidegate.Spec{Name: "day", Algorithm: tidegate.Quota, Calendar: tidegate.Day, Events: budget}
	if now := time.Now().UTC(); now.Hour() == 23 { // tomorrow has a budget of its own
		spec.Zone = "Asia/Tokyo"
	}
	begin := func(name string) *testdep.Program {
		return instance{Redis: redis.Addr, URL: "http://" + s.addr, Name: name, Spec: spec, Workers: workers}.start(t)
	}
	begin("a")
	begin("b")
	c := begin("c")
	s.await(t, "a third of the budget is used", time.Time{}, func(all []arrival) bool { return len(all) > budget/3 })
	c.Kill()
	begin("c again")
	ended := 0
	if !testdep.Await(5*time.Minute, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		ended = len(s.ended)
		return ended == 3
	}) {
		t.Fatalf("after 5 minutes %d of 3 instances have used up the budget, with %d calls", ended, len(s.since(time.Time{})))
	}
	calls := map[string]int{}
	all := s.since(time.Time{})
	for _, a := range all {
		calls[a.instance]++
	}
	t.Logf("%d calls: %v", len(all), calls)
	// What the killed process was about to call stays charged.
	if len(all) > budget || len(all) < budget-workers || len(calls) != 4 {
		t.Errorf("%d calls of a budget of %d: %v", len(all), budget, calls)
	}
}
