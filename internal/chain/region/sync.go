package region

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Other is another region, to which the counts of this one are sent.
type Other struct {
	Name  string
	Store chain.Regions // of that region
}

// Options of [Sync].
type Options struct {
	// Name is that of this region, and Store its store.
	Name  string
	Store chain.Regions
	// Others are the regions to send to.
	Others []Other
	// OnTrouble, unless nil, is called when a region cannot be reached, and with a nil error when it
	// can again. It is called from one goroutine for each region.
	OnTrouble func(region string, err error)
	// OnTooLarge, unless nil, is called with how many of the changed counters are too large to be sent
	// to a region, if there are some, at most once a minute.
	OnTooLarge func(region string, counters int)
}

// Syncer sends the counts of this region to others. Of several Syncers, only one at a time sends; if
// two ever do, nothing is counted twice. Use [Sync].
type Syncer struct {
	stop    context.CancelFunc
	tellers sync.WaitGroup
}

// Sync begins to send to other regions, independently of each other: one that does not answer holds up
// no other. Close the Syncer at the end.
func Sync(o Options) *Syncer {
	ctx, stop := context.WithCancel(context.Background())
	s := &Syncer{stop: stop}
	for _, to := range o.Others {
		t := &sender{o: &o, to: to, holder: tidegate.NewHandle()}
		s.tellers.Go(func() { t.run(ctx) })
	}
	return s
}

// Close ends the exchange.
func (s *Syncer) Close() {
	s.stop()
	s.tellers.Wait()
}

// sender sends to one region. All that it knows is also in the stores, so that another one can go on
// where it has ended.
type sender struct {
	o      *Options
	to     Other
	holder [2]uint64

	known  bool      // the saved cursor has been read since this process began to send
	cursor cursor    // what the other region has
	saved  cursor    // the cursor that the store has
	all    time.Time // everything before this was sent; zero means not known

	failed   int       // calls of tellChanges that have failed in a row
	tooLarge time.Time // when OnTooLarge was last called
}

// run sends changes to the region until ctx ends.
func (t *sender) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, err := t.tellChanges(ctx)
		if ctx.Err() != nil {
			return
		}
		t.note(err)
		if err != nil {
			pause = jitter(min(Interval<<min(t.failed, 8), maxBackOff))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// note calls OnTrouble when trouble begins or ends.
func (t *sender) note(err error) {
	was := t.failed
	if t.failed++; err == nil {
		t.failed = 0
	}
	if t.o.OnTrouble != nil && (was == 0) != (t.failed == 0) {
		t.o.OnTrouble(t.to.Name, err)
	}
}

// jitter returns three quarters to five quarters of d, so that several processes do not run in step.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// nothing is a change number above all others: a feed since then has no counters.
const nothing = 1 << 52

// tellChanges sends what has changed, as much as one call has room for. It returns the pause until the
// next call.
func (t *sender) tellChanges(ctx context.Context) (pause time.Duration, err error) {
	began := time.Now()
	feed, err := t.feed(ctx)
	switch {
	case err != nil:
		return 0, err
	case !feed.Held: // another process sends to it
		t.known, t.all = false, time.Time{}
		return jitter(hold / 4), nil
	case !t.known:
		t.known, t.cursor = true, parseCursor(feed.Saved)
		t.saved = t.cursor
		return 0, nil
	case feed.DataSet != t.cursor.source: // this store may have lost data, and changes have new numbers
		t.cursor = cursor{all: true, source: feed.DataSet, target: t.cursor.target}
		return 0, nil
	}
	welcome, err := t.merge(ctx, feed.Counters)
	switch {
	case err != nil:
		return 0, err
	case welcome.DataSet != t.cursor.target: // the other store has lost its data, or may have
		t.cursor = cursor{all: true, source: feed.DataSet, target: welcome.DataSet}
		t.all = time.Time{}
		return 0, nil
	}
	t.cursor.since = feed.Last
	if feed.Left > 0 && t.o.OnTooLarge != nil && began.Sub(t.tooLarge) >= time.Minute {
		t.tooLarge = began
		t.o.OnTooLarge(t.to.Name, feed.Left)
	}
	if feed.More {
		return 0, nil
	}
	t.cursor.all, t.all = false, began
	return max(Interval-time.Since(began), 0), nil
}

// feed asks the store of this region what has changed.
func (t *sender) feed(ctx context.Context) (chain.Feed, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q := chain.FeedQuery{To: t.to.Name, Holder: t.holder, Hold: hold, Own: chain.RegionNumber(t.o.Name), Since: nothing}
	if t.known {
		q.Since, q.All = t.cursor.since, t.cursor.all
	}
	saves := t.known && t.saved != t.cursor
	if saves {
		q.Save = t.cursor.String()
	}
	f, err := t.o.Store.Feed(ctx, q)
	if err == nil && saves && f.Held {
		t.saved = t.cursor
	}
	return f, err
}

// merge sends counters to the other region.
func (t *sender) merge(ctx context.Context, counters []chain.Replica) (chain.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	g := chain.Greeting{From: t.o.Name, To: chain.RegionNumber(t.to.Name), Age: -1}
	if !t.all.IsZero() {
		g.Age = time.Since(t.all)
	}
	return t.to.Store.Merge(ctx, g, counters)
}
