package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
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
	closed := tidegate.FailClosed
	store, err := fleet.Open("redis://"+i.Redis, fleet.Options{Deadline: 2 * time.Second, OnStoreFailure: &closed})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p, err := client.NewProvider(client.ProviderOptions{
		Name: "api", Store: store, Limits: []*tidegate.Limit{tidegate.MustLimit(i.Spec)},
		Base: &http.Transport{MaxIdleConnsPerHost: i.Workers},
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
	at       time.Time
	instance string
	status   int
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
	s.arrivals = append(s.arrivals, arrival{time.Now(), r.Header.Get("X-Instance"), status})
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
	for end := time.Now().Add(time.Minute); !ok(s.since(from)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within a minute there was no time at which %s", what)
		}
	}
}

// most is how many of all arrived within a span.
func most(all []arrival, span time.Duration) (most int) {
	slices.SortFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	for i, from := 0, 0; i < len(all); i++ {
		for all[i].at.Sub(all[from].at) > span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// Twenty processes share 50 calls a second of an API. They use it up and are hardly ever
// refused; when one is told to come back later, none of them asks earlier; when the server
// comes back after an outage, no more arrive than before.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of twenty processes")
	}
	t.Run("bucket", func(t *testing.T) { // half a second late is in time
		testProcesses(t, tidegate.MustLimit(tidegate.Spec{Events: 50, Period: time.Second, Algorithm: tidegate.TokenBucket, Burst: 25}), 50*time.Millisecond)
	})
	if os.Getenv("TIDEGATE_LONG") != "1" {
		return
	}
	t.Run("exact", func(t *testing.T) { // the 51st in any second is refused, 41 ms are too late
		testProcesses(t, tidegate.PerSecond(50), 30*time.Millisecond)
	})
}

func testProcesses(t *testing.T, limit *tidegate.Limit, pause time.Duration) {
	testdep.Undisturbed(t, pause, func(t testing.TB) {
		const instances, rate = 20, 48
		redis := testdep.Redis(t)
		s := newServer(t, tidegate.New(memory.New(), limit))
		for i := range instances {
			instance{
				Redis: redis.Addr, URL: "http://" + s.addr, Name: fmt.Sprint(i), Workers: 4,
				Spec: tidegate.Spec{Name: "calls", Events: rate, Period: time.Second, Algorithm: tidegate.TokenBucket, Burst: 1},
			}.start(t)
		}
		s.await(t, "every instance has called", time.Time{}, func(all []arrival) bool {
			seen := map[string]bool{}
			for _, a := range all {
				seen[a.instance] = true
			}
			return len(seen) == instances
		})
		checkUse(t, s, int(limit.Events))
		checkStop(t, s)
		checkOutage(t, s, rate)
	})
}

func checkUse(t testing.TB, s *server, limit int) {
	t.Helper()
	const span = 8 * time.Second
	from := time.Now()
	time.Sleep(span) // the measurement
	served, refused := 0, 0
	for _, a := range s.since(from) {
		switch {
		case a.at.After(from.Add(span)):
		case a.status == http.StatusOK:
			served++
		default:
			refused++
		}
	}
	share := float64(served) / (span.Seconds() * float64(limit))
	t.Logf("%.1f %% of the limit is used, %d of %d requests are refused", 100*share, refused, served+refused)
	if share < 0.95 || refused*100 >= served+refused {
		t.Errorf("%.1f %% of the limit is used, %d of %d requests are refused", 100*share, refused, served+refused)
	}
}

func checkStop(t testing.TB, s *server) {
	t.Helper()
	const wait = 4 * time.Second
	s.mu.Lock()
	s.refuse = wait
	s.mu.Unlock()
	s.await(t, "a request is refused and others come again", time.Now(), func(all []arrival) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.refused.IsZero() && len(all) > 0 && all[len(all)-1].at.After(s.refused.Add(wait))
	})
	flying, early := 0, 0
	for _, a := range s.since(s.refused) {
		switch after := a.at.Sub(s.refused); {
		case after > wait || a.status != http.StatusOK:
		case after < time.Second: // they were on their way, before anybody could know
			flying++
		default:
			early++
		}
	}
	t.Logf("after a Retry-After of %s, %d requests were on their way and %d came early", wait, flying, early)
	if early > 0 || flying > 20 {
		t.Errorf("after a Retry-After of %s, %d requests were on their way and %d came early", wait, flying, early)
	}
}

func checkOutage(t testing.TB, s *server, rate int) {
	t.Helper()
	s.stop()
	time.Sleep(5 * time.Second) // the outage
	s.start(t)
	back := time.Now()
	s.await(t, "the rate is back", back, func(all []arrival) bool {
		recent := 0
		for _, a := range all {
			if time.Since(a.at) < 3*time.Second {
				recent++
			}
		}
		return recent >= 3*rate*9/10
	})
	highest := most(s.since(back), time.Second)
	t.Logf("after an outage of 5 s the rate is back in %s, with at most %d requests in a second", time.Since(back).Round(100*time.Millisecond), highest)
	if highest*10 > rate*12 {
		t.Errorf("after an outage %d requests came in a second, of %d", highest, rate)
	}
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for ended := 0; ended < 3; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		ended = len(s.ended)
		s.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatalf("after 5 minutes %d of 3 instances have used up the budget, with %d calls", ended, len(s.since(time.Time{})))
		}
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
