package region

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Other is a region that is told what is counted in this one.
type Other struct {
	Name  string
	Store chain.Regions // of that region
}

// Options of [Sync].
type Options struct {
	// Name is that of this region, and Store its store.
	Name  string
	Store chain.Regions
	// Others are told what is counted here.
	Others []Other
	// OnTrouble is told when a region cannot be told, and with nil when it can again; from a goroutine
	// for each region. nil means that nobody is.
	OnTrouble func(region string, err error)
	// OnTooLarge is told how many of the counters that have changed are too large for a region to be
	// told of, when there are some, at most once a minute; nil means that nobody is.
	OnTooLarge func(region string, counters int)
}

// Syncer tells other regions what is counted in this one. Of several Syncers, one at a time does; if
// two ever do, nothing is counted twice. Use [Sync].
type Syncer struct {
	stop    context.CancelFunc
	tellers sync.WaitGroup
}

// Sync begins to tell other regions, each by itself: one that does not answer holds up no other. Close it
// at the end.
func Sync(o Options) *Syncer {
	ctx, stop := context.WithCancel(context.Background())
	s := &Syncer{stop: stop}
	for _, to := range o.Others {
		t := &teller{o: &o, to: to, holder: tidegate.NewHandle()}
		s.tellers.Go(func() { t.run(ctx) })
	}
	return s
}

// Close ends the exchange.
func (s *Syncer) Close() {
	s.stop()
	s.tellers.Wait()
}

// teller tells one region. All that it knows is also in the stores: another one goes on where it ended.
type teller struct {
	o      *Options
	to     Other
	holder [2]uint64

	known  bool      // cursor is what was saved last, or is later
	cursor cursor    // how far the other region has been told
	saved  cursor    // and how far the store knows that
	all    time.Time // everything before that has been told; zero means this is not known

	failed   int
	tooLarge time.Time // when OnTooLarge was last called
}

// run tells the region until ctx ends.
func (t *teller) run(ctx context.Context) {
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

// note tells of trouble that begins or ends.
func (t *teller) note(err error) {
	was := t.failed
	if t.failed++; err == nil {
		t.failed = 0
	}
	if t.o.OnTrouble != nil && (was == 0) != (t.failed == 0) {
		t.o.OnTrouble(t.to.Name, err)
	}
}

// jitter is about as long, so that several do not go on in step.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }

// nothing is a change after which there are none.
const nothing = 1 << 52

// tellChanges tells what has changed, as much as one call has room for. It returns after which pause the next
// one is due.
func (t *teller) tellChanges(ctx context.Context) (pause time.Duration, err error) {
	began := time.Now()
	feed, err := t.feed(ctx)
	switch {
	case err != nil:
		return 0, err
	case !feed.Held: // somebody else tells it
		t.known, t.all = false, time.Time{}
		return jitter(hold / 4), nil
	case !t.known:
		t.known, t.cursor = true, parseCursor(feed.Saved)
		t.saved = t.cursor
		return 0, nil
	case feed.DataSet != t.cursor.source: // what was told may be gone here, and changes have other numbers
		t.cursor = cursor{all: true, source: feed.DataSet, target: t.cursor.target}
		return 0, nil
	}
	welcome, err := t.merge(ctx, feed.Counters)
	switch {
	case err != nil:
		return 0, err
	case welcome.DataSet != t.cursor.target: // it has lost what it was told, or may have
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

// feed asks what has changed.
func (t *teller) feed(ctx context.Context) (chain.Feed, error) {
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

// merge tells what has changed.
func (t *teller) merge(ctx context.Context, counters []chain.Replica) (chain.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	g := chain.Greeting{From: t.o.Name, To: chain.RegionNumber(t.to.Name), Age: -1}
	if !t.all.IsZero() {
		g.Age = time.Since(t.all)
	}
	return t.to.Store.Merge(ctx, g, counters)
}
