package fleet_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

const (
	eventualEvents = 2000
	eventualPeriod = 2 * time.Second
	eventualNodes  = 3
)

// eventualLoad is three instances that exchange counts of one key.
type eventualLoad struct {
	testing.TB
	limit *tidegate.Limit
	nodes []*fleet.Store

	mu       sync.Mutex
	admitted []time.Time
	asked    int
	by       map[tidegate.Origin]int
}

func newEventualLoad(t testing.TB, url string, a tidegate.Algorithm, events int64, period time.Duration) *eventualLoad {
	l := &eventualLoad{TB: t, by: map[tidegate.Origin]int{}}
	l.limit = tidegate.MustLimit(tidegate.Spec{
		Name: "api", Events: events, Period: period, Algorithm: a,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}},
	})
	for range eventualNodes {
		s, err := fleet.Open(url, fleet.Options{Instances: func() int { return eventualNodes }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		l.nodes = append(l.nodes, s)
	}
	return l
}

// press sends so many requests a second to the instances, for a time.
func (l *eventualLoad) press(nodes []*fleet.Store, perSecond int, lasts time.Duration) {
	var all sync.WaitGroup
	const callers = 4
	gap := time.Second * time.Duration(callers*len(nodes)) / time.Duration(perSecond)
	start := time.Now()
	for i, s := range nodes {
		for j := range callers {
			all.Go(func() {
				checks := []tidegate.Check{{Key: "one", Limit: l.limit, Cost: 1}}
				first := gap * time.Duration(j*len(nodes)+i) / time.Duration(callers*len(nodes))
				for next := start.Add(first); time.Since(start) < lasts; next = next.Add(gap) {
					time.Sleep(time.Until(next))
					d, err := s.Take(context.Background(), checks, 1)
					l.note(&d, err)
				}
			})
		}
	}
	all.Wait()
}

func (l *eventualLoad) note(d *tidegate.Decision, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || d.Err != nil {
		l.Errorf("%v, %v", err, d.Err)
	}
	l.asked++
	l.by[d.Receipt.Origin]++
	if d.OK {
		l.admitted = append(l.admitted, now)
	}
}

// over is by how many events the limit was exceeded at worst.
func (l *eventualLoad) over() (worst float64) {
	slices.SortFunc(l.admitted, time.Time.Compare)
	counts := map[int64]float64{}
	part := l.limit.Period.Microseconds()
	older := int64(0) // parts of a window beside the current one
	if l.limit.Algorithm == tidegate.SubWindows {
		older = int64(l.limit.Parts)
		part = (part + older - 1) / older
	}
	for _, at := range l.admitted {
		us := at.UnixMicro()
		now := us / part
		counts[now]++
		used := counts[now]
		for i := int64(1); i < older; i++ {
			used += counts[now-i]
		}
		if older > 0 {
			used += math.Floor(counts[now-older] * (1 - float64(us%part)/float64(part)))
		}
		worst = max(worst, used-float64(l.limit.Events))
	}
	return worst
}

// Three instances exchange counts through one Redis, single or a cluster. Three times the limit is
// held to it but for what is stated, and nine tenths of it pass, on all instances or on one.
func TestEventual(t *testing.T) {
	t.Parallel()
	single := testdep.Redis(t)
	servers := append(testdep.RedisCluster(t, 3, 0), single)
	urls := map[string]string{"single": "redis://" + single.Addr, "cluster": "redis-cluster://" + servers[0].Addr}
	for name, url := range urls {
		for _, a := range []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow} {
			if !testdep.Long() && (name == "single") != (a == tidegate.SubWindows) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", a), func(t *testing.T) {
				attempt := 0
				testdep.Undisturbed(t, disturbance, func(t testing.TB) {
					attempt++
					open := func(what string) *eventualLoad {
						return newEventualLoad(t, fmt.Sprintf("%s?prefix=%s-%s-%d", url, what, a, attempt), a, eventualEvents, eventualPeriod)
					}
					l := open("over")
					l.press(l.nodes, 3*eventualEvents/2, 3*time.Second)
					if worst := l.over(); worst > 0.07*eventualEvents {
						t.Errorf("over by %.1f %%", 100*worst/eventualEvents)
					}
					if l.by[tidegate.OriginEventual] != l.asked {
						t.Errorf("%d asked, decided by %v", l.asked, l.by)
					}
					for _, nodes := range []int{eventualNodes, 1} {
						l := open(fmt.Sprint("below", nodes))
						l.press(l.nodes[:nodes], eventualEvents*9/20, 3*time.Second)
						if refused := l.asked - len(l.admitted); refused > 0 {
							t.Errorf("%d of %d are refused on %d", refused, l.asked, nodes)
						}
					}
				}, servers...)
			})
		}
	}
}

// lossy is a proxy that cuts a connection in place of one answer in twenty.
func lossy(t testing.TB, target string) (addr string) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	go func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, client) }()
				buf := make([]byte, 64<<10)
				for {
					n, err := server.Read(buf)
					if err != nil || rand.IntN(20) == 0 {
						return
					}
					if _, err := client.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return in.Addr().String()
}

// Where answers are lost, nothing is counted twice, and nothing is forgotten: Redis has what was
// admitted, to the event.
func TestEventualLostAnswers(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	l := newEventualLoad(t, "redis://"+lossy(t, server.Addr), tidegate.SubWindows, 1_000_000, time.Hour)
	l.press(l.nodes, 2000, 5*time.Second)
	inner, err := redis.New("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	shared, _ := chain.AsShared(inner)
	number, counted := uint64(0), int64(0)
	testdep.Await(time.Minute, func() bool { // until what is left has been sent
		number++
		all := []chain.Tally{{Limit: l.limit, Key: "one", Instance: [2]uint64{7, 7}, Number: number}}
		if err := shared.Tallies().Exchange(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		counted = 0
		for _, p := range all[0].Answer.Totals {
			counted += p.Count
		}
		return counted == int64(len(l.admitted))
	})
	if counted != int64(len(l.admitted)) || len(l.admitted) != l.asked {
		t.Errorf("%d are counted, %d of %d were admitted", counted, len(l.admitted), l.asked)
	}
}

// While Redis is away, instances have their shares of the limit, and what they admitted is known to all
// of them afterwards.
func TestEventualOutage(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	attempt := 0
	testdep.Undisturbed(t, disturbance, func(t testing.TB) {
		attempt++
		l := newEventualLoad(t, fmt.Sprintf("redis://%s?prefix=away-%d", server.Addr, attempt), tidegate.FixedWindow, eventualEvents, eventualPeriod)
		var all sync.WaitGroup
		all.Go(func() { l.press(l.nodes, 3*eventualEvents/2, 6*time.Second) })
		time.Sleep(1500 * time.Millisecond)
		server.Pause()
		time.Sleep(3 * time.Second)
		server.Resume()
		all.Wait()
		if worst := l.over(); worst > 0.2*eventualEvents {
			t.Errorf("over by %.1f %%", 100*worst/eventualEvents)
		}
	}, server)
}

// Operators see how far behind the others an instance is.
func TestEventualLag(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	l := newEventualLoad(t, "redis://"+server.Addr, tidegate.SubWindows, 10, time.Hour)
	if lag := l.nodes[0].Health().Lag; lag != 0 {
		t.Errorf("a lag of %s before the first request", lag)
	}
	l.press(l.nodes[:1], 100, 100*time.Millisecond)
	waitMembers(t, l.nodes[0], "it tells its lag", func(all []fleet.Member) bool {
		return slices.ContainsFunc(all, func(m fleet.Member) bool { return m.Self && m.Lag > 0 })
	})
}
