package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain/queue/queuetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

// patient is a deadline that a busy machine does not miss.
const patient = time.Minute

func open(t testing.TB, url string, o fleet.Options) *fleet.Store {
	t.Helper()
	s, err := fleet.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The whole stack as it is served is a store like any other: the line and the timing
// included.
func TestConformance(t *testing.T) {
	server := testdep.Redis(t)
	n, timed := 0, new(atomic.Int64)
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		n++
		s := open(t, fmt.Sprintf("redis://%s?prefix=t%d", server.Addr, n), fleet.Options{
			Deadline: patient, OnTake: func(time.Duration) { timed.Add(1) },
		})
		s.TurnsBy(new(queuetest.Clock))
		return queuetest.Telling{Store: s}
	}, storetest.Brief())
	if timed.Load() == 0 {
		t.Error("nothing was timed")
	}
}

// The example is not run, as there is no Redis at its address; that it compiles is enough.
var example = Example

func TestExample(t *testing.T) {
	if example == nil {
		t.Error("there is no example")
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, url := range []string{"", "localhost:6379", "http://localhost"} {
		if s, err := fleet.Open(url, fleet.Options{}); err == nil || s != nil {
			t.Errorf("%q: %v, %v", url, s, err)
		}
	}
}

// The stack as it is served batches: no layer hides what Redis is able to do.
func TestStackBatches(t *testing.T) {
	s := open(t, "redis://"+testdep.Redis(t).Addr, fleet.Options{Deadline: patient, OnTake: func(time.Duration) {}, OnCall: func(time.Duration) {}})
	lim := tidegate.New(s, tidegate.PerHour(1_000_000))
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			for j := range 20 {
				if d := lim.Allow(t.Context(), fmt.Sprint(i, " ", j)); !d.OK || d.Err != nil { // each key once
					t.Errorf("%+v", d)
				}
			}
		})
	}
	all.Wait()
	if h := s.Stats(); h.Asked != 4000 || h.Calls > h.Asked/2 || h.Shared != 0 {
		t.Errorf("%d calls for %d keys: %+v", h.Calls, h.Asked, h)
	}
}

// program is the fifteen lines that a user writes.
func program(url string, limit *tidegate.Limit) (http.Handler, *fleet.Store, error) {
	store, err := fleet.Open(url, fleet.Options{})
	if err != nil {
		return nil, nil, err
	}
	lim := tidegate.New(store, limit)
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	return httplimit.Limit(lim, httplimit.IP())(hello), store, nil
}

// Two copies of a program under 100 requests a second each, while Redis stands still for
// some seconds: every answer comes in time, neither admits more than its share, and
// both recover by themselves.
func TestRedisStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	server := testdep.Redis(t)
	const events = 400 // half of it used before, and none comes back during the test
	limit := tidegate.MustLimit(tidegate.Spec{Name: "program", Events: events, Period: 8000 * time.Hour, Algorithm: tidegate.FixedWindow})
	var programs [2]http.Handler
	var stores [2]*fleet.Store
	for i := range programs {
		var err error
		if programs[i], stores[i], err = program("redis://"+server.Addr, limit); err != nil {
			t.Fatal(err)
		}
		defer stores[i].Close()
	}
	for i, s := range stores {
		testdep.Eventually(t, fmt.Sprint("instances of ", i), func() bool { return s.Instances() == 2 })
	}
	ask := func(i int) (ok bool, took time.Duration) {
		w := httptest.NewRecorder()
		start := time.Now()
		programs[i].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code == http.StatusOK, time.Since(start)
	}
	before := 0
	for i := range events / 2 {
		if ok, _ := ask(i % 2); ok {
			before++
		}
	}
	unheard := func() int64 {
		one, other := stores[0].Stats(), stores[1].Stats()
		return one.Timeouts + one.Errors + one.Busy + one.Backlog + other.Timeouts + other.Errors + other.Busy + other.Backlog
	}
	// A busy machine may make them miss the deadline: in the end, both have an answer of Redis.
	testdep.Eventually(t, "Redis answers both", func() bool {
		was := unheard()
		for i, s := range stores {
			if ok, _ := ask(i); ok {
				before++
			}
			if s.Health().Status != fleet.OK || s.Stats().Backlog > 0 {
				return false
			}
		}
		return unheard() == was
	})
	server.Pause()
	var slowest [2]time.Duration
	var admitted [2]int
	var all sync.WaitGroup
	for i := range programs {
		all.Go(func() {
			for range 400 {
				time.Sleep(10 * time.Millisecond)
				ok, took := ask(i)
				if slowest[i] = max(slowest[i], took); ok {
					admitted[i]++
				}
			}
		})
	}
	stood := testdep.Standstill(all.Wait)
	for i, s := range stores {
		if h := s.Health(); h.Status != fleet.Degraded || h.Why == nil || h.Instances != 2 {
			t.Errorf("program %d while Redis stands still: %+v", i, h)
		}
	}
	server.Resume()
	for i, s := range stores {
		testdep.Eventually(t, fmt.Sprint("health of ", i), func() bool { return s.Health().Status == fleet.OK && s.Stats().Backlog == 0 })
	}
	time.Sleep(time.Second) // refusals of before are remembered for that long
	after, missed := 0, unheard()
	for i := range events {
		if ok, _ := ask(i % 2); ok {
			after++
		}
	}
	missed = unheard() - missed // these were decided without Redis
	sum := before + admitted[0] + admitted[1] + after
	t.Logf("%d before, %d and %d while Redis stood still, %d after: %d of %d; the slowest answers took %s and %s, and this process stood still for up to %s",
		before, admitted[0], admitted[1], after, sum, events, slowest[0], slowest[1], stood)
	for i := range programs {
		if most := (events - before + 1) / 2; admitted[i] > most { // the first has not seen the last request of the other
			t.Errorf("program %d admitted %d alone, want at most %d", i, admitted[i], most)
		}
		if most := fleet.DefaultDeadline + 10*time.Millisecond + 10*stood + 200*time.Millisecond; slowest[i] > most {
			t.Errorf("program %d: the slowest answer took %s, want at most %s", i, slowest[i], most)
		}
	}
	if sum > events+int(missed) || sum < events-events/10 {
		t.Errorf("%d admitted in all, want %d", sum, events)
	}
}

// Health follows heartbeats where there are no requests, and OnState is told of changes.
func TestHealth(t *testing.T) {
	server := testdep.Redis(t)
	var mu sync.Mutex
	var told []string
	s := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, OnState: func(h fleet.Health) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, h.Status)
	}})
	if h := s.Health(); h.Status != fleet.OK || h.Why != nil || h.Instances != 1 {
		t.Errorf("%+v", h)
	}
	server.Kill()
	testdep.Eventually(t, "degraded", func() bool { return s.Health().Status == fleet.Degraded })
	if h := s.Health(); h.Why == nil || time.Since(h.Since) > time.Minute {
		t.Errorf("%+v", h)
	}
	server.Start()
	testdep.Eventually(t, "ok", func() bool { return s.Health().Status == fleet.OK })
	testdep.Eventually(t, "told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) >= 2 && told[0] == fleet.Degraded && told[len(told)-1] == fleet.OK
	})
}

// A store that joins later is not counted before.
func TestJoinLater(t *testing.T) {
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	first := open(t, url, fleet.Options{})
	second := open(t, url, fleet.Options{JoinLater: true})
	third := open(t, url, fleet.Options{}) // it opens after the second, and is counted before
	testdep.Eventually(t, "two", func() bool { return first.Instances() == 2 && third.Instances() == 2 })
	if n, listed := second.Instances(), server.Do("ZCARD", "tg:nodes"); n != 1 || listed != "2" {
		t.Errorf("before it joined it counts %d instances, and %s are listed", n, listed)
	}
	second.Join()
	testdep.Eventually(t, "three", func() bool { return first.Instances() == 3 && second.Instances() == 3 && third.Instances() == 3 })
	if n := open(t, url, fleet.Options{Instances: func() int { return 7 }}).Instances(); n != 7 {
		t.Errorf("%d instances, want those that were named", n)
	}
}

// Limits whose Terms name no mode are answered for by Options.OnStoreFailure, whatever else they say.
func TestOnStoreFailure(t *testing.T) {
	server := testdep.Redis(t)
	server.Kill()
	f := func(mode tidegate.FailMode, terms *tidegate.Terms, want int) {
		t.Helper()
		s := open(t, "redis://"+server.Addr, fleet.Options{OnStoreFailure: mode})
		limit := tidegate.MustLimit(tidegate.Spec{Events: 5, Period: time.Hour, Terms: terms})
		lim, admitted := tidegate.New(s, limit), 0
		for range 20 {
			if lim.Allow(t.Context(), "k").OK {
				admitted++
			}
		}
		if admitted != want {
			t.Errorf("mode %d, %+v: %d of 5 admitted, want %d", mode, terms, admitted, want)
		}
	}
	for _, terms := range []*tidegate.Terms{
		nil,
		{},
		{Rule: "api"},
		{AtEnd: tidegate.AtEnd{Settle: "response.body.usage.total_tokens"}},
		{Handling: tidegate.Handling{Consistency: tidegate.Leased}},
		{Handling: tidegate.Handling{NoDenyCache: true, NoCoalesce: true}},
	} {
		f(tidegate.FailDefault, terms, 5)
		f(tidegate.FailLocal, terms, 5)
		f(tidegate.FailOpen, terms, 20)
		f(tidegate.FailClosed, terms, 0)
	}
	own := func(mode tidegate.FailMode) *tidegate.Terms {
		return &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}}
	}
	f(tidegate.FailClosed, own(tidegate.FailOpen), 20)
	f(tidegate.FailOpen, own(tidegate.FailClosed), 0)
	f(tidegate.FailClosed, own(tidegate.FailLocal), 5)
}

// A client that hangs up before Redis has answered is not served: it would not be charged.
func TestWhoHangsUpIsNotServed(t *testing.T) {
	server := testdep.Redis(t)
	s := open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient})
	server.Pause()
	defer server.Resume()
	for _, limit := range []*tidegate.Limit{tidegate.PerMinute(100), tidegate.Slots(100, time.Minute)} {
		served := 0
		handler := httplimit.Limit(tidegate.New(s, limit), httplimit.IP())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		for i := range 10 {
			ctx, leave := context.WithCancel(t.Context())
			if time.AfterFunc(time.Duration(i)*time.Millisecond, leave); i == 0 {
				leave()
			}
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		}
		if served > 0 {
			t.Errorf("%s: %d of 10 were served after they had left", limit, served)
		}
	}
}
