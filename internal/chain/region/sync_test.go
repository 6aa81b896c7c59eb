package region

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual/hub"
)

var limit = tidegate.MustLimit(tidegate.Spec{
	Name: "api", Events: 1000, Period: time.Hour, Algorithm: tidegate.FixedWindow,
	Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: tidegate.PartitionContinue}},
})

var errKilled = errors.New("killed")

// store is a hub that a test can cut off, empty, and kill callers of.
type store struct {
	mu     sync.Mutex
	hub    *hub.Hub
	away   bool
	calls  int
	killAt int    // the call with which the caller ends; 0 means none
	late   bool   // after it was done
	left   int    // counters that every feed leaves out
	kill   func() // ends the caller
}

func newStore() *store { return &store{hub: hub.New(time.Now)} }

func (s *store) now() *hub.Hub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hub
}

func (s *store) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *store) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub = hub.New(time.Now)
}

// call does something at the hub, in 20 ms.
func (s *store) call(ctx context.Context, do func(*hub.Hub)) error {
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	s.calls++
	away, killed, late, h := s.away, s.calls == s.killAt, s.late, s.hub
	s.mu.Unlock()
	if killed {
		s.kill()
	}
	if away {
		<-ctx.Done()
		return ctx.Err()
	}
	if killed && !late {
		return errKilled
	}
	do(h)
	time.Sleep(10 * time.Millisecond)
	if killed {
		return errKilled
	}
	return ctx.Err()
}

func (s *store) Feed(ctx context.Context, q chain.FeedQuery) (f chain.Feed, err error) {
	err = s.call(ctx, func(h *hub.Hub) { f, _ = h.Feed(ctx, q); f.Left = s.left })
	return f, err
}

func (s *store) Merge(ctx context.Context, g chain.Greeting, c []chain.Replica) (w chain.Welcome, err error) {
	err = s.call(ctx, func(h *hub.Hub) { w, _ = h.Merge(ctx, g, c) })
	return w, err
}

func (s *store) Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error) {
	err = s.call(ctx, func(h *hub.Hub) { at, now, _ = h.Heard(ctx) })
	return at, now, err
}

// count has an instance of a region say what it has counted of a key.
func (s *store) count(region, key string, instance, number uint64, n int64) {
	start := time.Now().Truncate(time.Hour)
	_ = s.now().Exchange(context.Background(), []chain.Tally{{
		Limit: limit, Key: key, Region: chain.RegionNumber(region), Instance: [2]uint64{instance, 1}, Number: number,
		Parts: []chain.TallyPart{{Start: start.UnixMicro(), End: start.Add(time.Hour).UnixMicro(), Count: n}},
	}})
}

// total is what the store has of a key.
func (s *store) total(key string) (sum int64) {
	one := []chain.Tally{{Limit: limit, Key: key, Instance: [2]uint64{99, 99}, Number: 1}}
	_ = s.now().Exchange(context.Background(), one)
	for _, p := range one[0].Answer.Totals {
		sum += p.Count
	}
	return sum
}

// syncedRegions is regions that tell each other.
type syncedRegions struct {
	names   []string
	stores  []*store
	syncers []*Syncer
}

func newSyncedRegions(names ...string) *syncedRegions {
	w := &syncedRegions{names: names}
	for range names {
		w.stores = append(w.stores, newStore())
	}
	for i := range names {
		w.syncers = append(w.syncers, w.sync(i))
	}
	return w
}

func (w *syncedRegions) sync(i int) *Syncer {
	o := Options{Name: w.names[i], Store: w.stores[i]}
	for j, name := range w.names {
		if j != i {
			o.Others = append(o.Others, Other{name, w.stores[j]})
		}
	}
	return Sync(o)
}

func (w *syncedRegions) close() {
	for _, s := range w.syncers {
		s.Close()
	}
}

// converges waits until all regions have a total of a key, and returns how long that took.
func (w *syncedRegions) converges(t *testing.T, key string, want int64) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		same := true
		for _, s := range w.stores {
			same = same && s.total(key) == want
		}
		if took := time.Since(began); same {
			return took
		} else if took > time.Minute {
			for i, s := range w.stores {
				t.Errorf("%s has %d of %s, want %d", w.names[i], s.total(key), key, want)
			}
			return took
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Regions know within an interval and two round trips what others have counted, also where one region
// does not answer.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSyncedRegions("eu", "us", "ap")
		defer w.close()
		for i := range w.stores {
			w.stores[i].count(w.names[i], "a", uint64(i), 1, 100<<i)
		}
		w.converges(t, "a", 700)
		w.stores[0].count("eu", "a", 0, 2, 150)
		if took := w.converges(t, "a", 750); took > Interval+80*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		w.stores[2].setAway(true)
		time.Sleep(10 * time.Second)
		w.stores[0].count("eu", "a", 0, 3, 160)
		time.Sleep(Interval + 80*time.Millisecond)
		if got := w.stores[1].total("a"); got != 760 {
			t.Errorf("us has %d, want 760: a region that is away holds it up", got)
		}
		w.stores[2].setAway(false)
		if took := w.converges(t, "a", 760); took > callTime+2*maxBackOff {
			t.Errorf("it took %s after the partition", took)
		}
	})
}

// Counters that are too large for others to be told of are reported, once a minute.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &syncedRegions{names: []string{"eu", "us"}, stores: []*store{newStore(), newStore()}}
		w.stores[0].left = 3
		var told atomic.Int64
		syncer := Sync(Options{
			Name: "eu", Store: w.stores[0], Others: []Other{{"us", w.stores[1]}},
			OnTooLarge: func(region string, counters int) {
				if region != "us" || counters != 3 {
					t.Errorf("%d counters for %s", counters, region)
				}
				told.Add(1)
			},
		})
		defer syncer.Close()
		w.stores[0].count("eu", "a", 1, 1, 100)
		w.converges(t, "a", 100)
		time.Sleep(150 * time.Second)
		if n := told.Load(); n != 3 {
			t.Errorf("told %d times in two and a half minutes, want 3", n)
		}
	})
}

// A store that was emptied gets everything back within a moment, also what was counted in its own
// region, and nothing counts twice.
func TestLostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSyncedRegions("eu", "us", "ap")
		defer w.close()
		const keys = 700 // more than one call has
		for k := range keys {
			for i := range w.stores {
				w.stores[i].count(w.names[i], fmt.Sprint(k), uint64(i), 1, int64(k+i))
			}
		}
		for k := range keys {
			w.converges(t, fmt.Sprint(k), int64(3*k+3))
		}
		w.stores[0].lose()
		w.stores[0].count("eu", "5", 0, 2, 6) // this one is asked, and says what it knows
		took := w.converges(t, "5", 19)
		for k := range keys {
			if k != 5 {
				took = max(took, w.converges(t, fmt.Sprint(k), int64(3*k+3)))
			}
		}
		if took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// Whoever tells another region may end at any call, before it is done or after: the next one goes on, and
// all have the same in the end.
func TestSyncerCrashesAnywhere(t *testing.T) {
	for _, at := range []string{"source", "target"} {
		for _, late := range []bool{false, true} {
			for call := 1; call <= 25; call++ {
				synctest.Test(t, func(t *testing.T) {
					w := newSyncedRegions("eu", "us")
					defer w.close()
					hit := w.stores[0]
					if at == "target" {
						hit = w.stores[1]
					}
					var once sync.Once
					var restarted sync.WaitGroup
					hit.mu.Lock()
					hit.killAt, hit.late = hit.calls+call, late
					hit.kill = func() {
						once.Do(func() {
							restarted.Go(func() { // not by whoever is killed
								w.syncers[0].Close()
								w.syncers[0] = w.sync(0)
							})
						})
					}
					hit.mu.Unlock()
					for n := range int64(10) {
						w.stores[0].count("eu", "a", 1, uint64(n+1), 10*n)
						w.stores[0].count("eu", fmt.Sprint("b", n), 1, 1, n)
						w.stores[1].count("us", "a", 2, uint64(n+1), n)
						time.Sleep(30 * time.Millisecond)
					}
					time.Sleep(5 * time.Second) // whoever was killed is
					restarted.Wait()
					w.converges(t, "a", 99)
					for n := range int64(10) {
						w.converges(t, fmt.Sprint("b", n), n)
					}
				})
			}
		}
	}
}

// Several that tell the same region do no harm, and one at a time does.
func TestSeveralSyncers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSyncedRegions("eu", "us")
		defer w.close()
		for range 4 {
			w.syncers = append(w.syncers, w.sync(0))
		}
		time.Sleep(time.Second)
		w.stores[1].mu.Lock()
		before := w.stores[1].calls
		w.stores[1].mu.Unlock()
		for n := range uint64(100) {
			w.stores[0].count("eu", "a", 1, n+1, int64(n))
			time.Sleep(Interval)
		}
		w.converges(t, "a", 99)
		w.stores[1].mu.Lock()
		calls := w.stores[1].calls - before
		w.stores[1].mu.Unlock()
		if most := 2*105 + 5*40; calls > most { // it also tells eu itself
			t.Errorf("%d calls in 100 intervals, want at most %d", calls, most)
		}
	})
}

// A Watch knows how far behind a region is, and when it is cut off.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSyncedRegions("eu", "us")
		defer w.close()
		watch := NewWatch(w.stores[0], []string{"us"})
		defer watch.Close()
		time.Sleep(2 * time.Second)
		if is := watch.All()[0]; is.Name != "us" || !is.Heard || is.CutOff || is.Lag > watchEvery+3*Interval || watch.CutOff() {
			t.Errorf("%+v", is)
		}
		w.syncers[1].Close() // nobody tells eu any more
		time.Sleep(PartitionAfter - 500*time.Millisecond)
		if watch.CutOff() {
			t.Error("it is cut off already")
		}
		time.Sleep(2 * time.Second)
		if is := watch.All()[0]; !is.CutOff || !watch.CutOff() || is.Lag < PartitionAfter {
			t.Errorf("%+v", is)
		}
		w.syncers[1] = w.sync(1)
		time.Sleep(4 * time.Second)
		if is := watch.All()[0]; is.CutOff || watch.CutOff() {
			t.Errorf("%+v after it was back", is)
		}
		w.stores[0].setAway(true) // who cannot be asked says nothing
		time.Sleep(PartitionAfter + time.Second)
		if !watch.CutOff() {
			t.Error("what nobody can tell does not grow older")
		}
	})
}

// An instance that starts while a region is cut off knows that at once, from its store. It knows as well that
// one has been heard of again, and one that the store knows nothing of has time to be.
func TestWatchBeginsInAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSyncedRegions("eu", "us")
		defer w.close()
		time.Sleep(2 * time.Second)
		w.syncers[1].Close() // nobody tells eu any more
		time.Sleep(20 * time.Second)
		watch := NewWatch(w.stores[0], []string{"us"})
		defer watch.Close()
		time.Sleep(watchEvery)
		if is := watch.All()[0]; !is.Heard || !is.CutOff || is.Lag < 20*time.Second || !watch.CutOff() {
			t.Errorf("%+v, of a region that was heard of 20 s ago", is)
		}
		w.syncers[1] = w.sync(1)
		time.Sleep(4 * time.Second)
		if is := watch.All()[0]; is.CutOff || watch.CutOff() {
			t.Errorf("%+v after it was back", is)
		}
		w.syncers[1].Close()
		w.stores[0].lose()
		fresh := NewWatch(w.stores[0], []string{"us"})
		defer fresh.Close()
		time.Sleep(PartitionAfter - watchEvery)
		if is := fresh.All()[0]; is.Heard || is.CutOff || fresh.CutOff() {
			t.Errorf("%+v, of a region that nobody knows of yet", is)
		}
		time.Sleep(2 * watchEvery)
		if !fresh.CutOff() {
			t.Error("it is not cut off, and has never been heard of")
		}
	})
}

// A clock of the store that is set back while a region is cut off does not make it heard of.
func TestWatchAndClocks(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -2 * time.Second, 0, 2 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var ahead atomic.Int64
			h := hub.New(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			watch := NewWatch(h, []string{"us"})
			defer watch.Close()
			hear := func() { _, _ = h.Merge(t.Context(), chain.Greeting{From: "us", To: 1}, nil) }
			for range 20 {
				hear()
				time.Sleep(Interval)
			}
			ahead.Store(int64(step))
			time.Sleep(PartitionAfter + 2*watchEvery)
			if is := watch.All()[0]; !is.CutOff || !watch.CutOff() {
				t.Errorf("a step of %s: %+v", step, is)
			}
			hear()
			time.Sleep(2 * watchEvery)
			if is := watch.All()[0]; is.CutOff || watch.CutOff() {
				t.Errorf("a step of %s: %+v after it was back", step, is)
			}
		})
	}
}

func TestCursor(t *testing.T) {
	for _, c := range []cursor{{0, true, "", ""}, {0, false, "a/b", "c"}, {77, true, "0a", "0b/1"}} {
		if got := parseCursor(c.String()); got != c {
			t.Errorf("%q is read as %+v", c, got)
		}
	}
	for _, text := range []string{"", "x", "5 a", "a b c", "5 a b c", "5 true a b c", "-1 true a b", "99999999999999999999 true a b"} {
		if got := parseCursor(text); got != (cursor{all: true}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
