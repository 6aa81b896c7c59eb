package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// lossy is the way to a store that knows posts, on which posts or their answers get lost,
// or arrive when nobody waits for them any more.
type lossy struct {
	*memory.Store
	mu    sync.Mutex
	rand  *rand.Rand
	away  bool
	loses float64           // of posts, and as many answers, and as many are late
	marks map[string]uint64 // the last number, by boot and counter
	again int               // posts that came once more
}

func (l *lossy) set(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *lossy) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	l.mu.Lock()
	away := l.away
	l.mu.Unlock()
	if away {
		return tidegate.Decision{}, errBroken
	}
	return l.Store.Take(ctx, checks, n)
}

func (l *lossy) Post(ctx context.Context, p chain.Post) error {
	l.mu.Lock()
	away, fate := l.away, l.rand.Float64()/l.loses
	late := time.Duration(l.rand.Int64N(int64(20 * time.Second)))
	l.mu.Unlock()
	switch {
	case away:
		return errBroken
	case fate < 1: // it does not arrive
		<-ctx.Done()
		return ctx.Err()
	case fate < 2: // it arrives, whatever else has by then
		go func() {
			time.Sleep(late)
			l.charge(p)
		}()
		<-ctx.Done()
		return ctx.Err()
	case fate < 3: // the connection is closed before the answer is there
		l.charge(p)
		return errBroken
	}
	l.charge(p)
	return nil
}

func (l *lossy) charge(p chain.Post) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := fmt.Sprint(p.Boot, p.Check.Limit.Identity(), p.Check.Key)
	if l.marks[id] >= p.Number {
		l.again++
		return
	}
	l.marks[id] = p.Number
	if err := l.Store.Adjust(context.Background(), tidegate.Receipt{}, []tidegate.Check{p.Check}); err != nil {
		panic(err)
	}
}

func (l *lossy) repeated() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

// Whatever gets lost of posts or of their answers, or arrives late: what was admitted in
// an outage is charged once.
func TestPostsAreChargedOnce(t *testing.T) {
	specs := []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 1000, Period: 4000 * time.Hour, Burst: 1000},
		{Algorithm: tidegate.LeakyBucket, Events: 1000, Period: 4000 * time.Hour, Burst: 1000},
		{Algorithm: tidegate.FixedWindow, Events: 1000, Period: 48 * time.Hour},
		{Algorithm: tidegate.SlidingWindow, Events: 1000, Period: 48 * time.Hour},
		{Algorithm: tidegate.SubWindows, Events: 1000, Period: 48 * time.Hour},
		{Algorithm: tidegate.SlidingLog, Events: 1000, Period: 48 * time.Hour},
		{Algorithm: tidegate.Quota, Events: 1000, Calendar: tidegate.Month},
	}
	for i, spec := range specs {
		for _, loses := range []float64{0.05, 0.15, 0.3} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // not at the edge of a day
				spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
				limit := tidegate.MustLimit(spec)
				way := &lossy{Store: memory.New(), rand: rand.New(rand.NewPCG(uint64(i), 1)), loses: loses, marks: map[string]uint64{}}
				n := newNode(way, Options{})
				admitted, pauses := map[string]int{}, rand.New(rand.NewPCG(2, uint64(i)))
				for range 4 { // outages, some of which come while posts are in doubt
					way.set(true)
					for k := range 40 {
						key := fmt.Sprint(k)
						admitted[key] += spend(t, n, limit, key, 1+k%3)
					}
					time.Sleep(time.Second)
					way.set(false)
					time.Sleep(time.Duration(pauses.IntN(3000)) * time.Millisecond)
				}
				time.Sleep(3 * time.Minute)
				if h := n.Health(); h.Backlog != 0 || h.Lost != 0 || h.State != OK {
					t.Errorf("%s, %g lost: %+v", limit, loses, h)
				}
				for key, want := range admitted {
					d := tidegate.New(way, limit).Peek(t.Context(), key)
					if used := usedOf(&d); used != int64(want) {
						t.Errorf("%s, %g lost: %d charged to %s, %d were admitted", limit, loses, used, key, want)
					}
				}
				if way.repeated() == 0 {
					t.Errorf("%s, %g lost: no post came twice: the test has lost its point", limit, loses)
				}
				_ = n.Close()
				time.Sleep(time.Minute)
			})
		}
	}
}

// A post that is never answered is given up and counted, and its key is not local for ever.
func TestPostsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &lossy{Store: memory.New(), rand: rand.New(rand.NewPCG(1, 1)), loses: 1e9, marks: map[string]uint64{}, away: true} // nothing ever arrives
		n := newNode(way, Options{})
		l := limit("l", 100, tidegate.FailLocal)
		spend(t, n, l, "a", 7)
		way.set(false)
		time.Sleep(10 * time.Minute)
		if h := n.Health(); h.State != OK || h.Backlog != 0 || h.Lost != 1 {
			t.Errorf("%+v", h)
		}
		if d := tidegate.New(n, l).Peek(t.Context(), "a"); d.Receipt.Origin != tidegate.OriginStore {
			t.Errorf("%+v", d)
		}
		wantNoGoroutine(t)
		_ = n.Close()
	})
}
