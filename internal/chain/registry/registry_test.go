package registry

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// paper is a list in memory: Redis does not live in virtual time.
type paper struct {
	mu    sync.Mutex
	until map[string]time.Time
	beats int
	down  bool
	mute  chan struct{} // if not nil, it answers when this is closed, whatever its context says
}

func (p *paper) Beat(_ context.Context, h chain.Heartbeat) (chain.Roster, error) {
	p.mu.Lock()
	mute := p.mute
	p.mu.Unlock()
	if mute != nil {
		<-mute
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats++
	if p.down {
		return chain.Roster{}, errors.New("connection refused")
	}
	if p.until == nil {
		p.until = make(map[string]time.Time)
	}
	r := chain.Roster{Listed: time.Now().Before(p.until[h.ID])}
	p.until[h.ID] = time.Now().Add(h.TTL)
	for id, until := range p.until {
		if time.Now().Before(until) {
			r.Live++
			if id < h.ID {
				r.Rank++
			}
		}
	}
	return r, nil
}

func (p *paper) Leave(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, id)
	return nil
}

// set changes the paper.
func (p *paper) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func sizes(t *testing.T, want int, all ...*Registry) {
	t.Helper()
	for i, f := range all {
		if got := f.Size(); got != want {
			t.Errorf("instance %d counts %d, want %d", i, got, want)
		}
	}
}

func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		a := Join(p, Options{})
		sizes(t, 1, a)
		b, c := Join(p, Options{}), Join(p, Options{})
		time.Sleep(DefaultEvery)
		synctest.Wait()
		sizes(t, 3, a, b, c)

		// One leaves: the others are sure of it after a while.
		c.Close()
		time.Sleep(DefaultTTL / 2)
		sizes(t, 3, a, b)
		time.Sleep(DefaultTTL/2 + 2*DefaultEvery)
		synctest.Wait()
		sizes(t, 2, a, b)

		// During an outage the number stays, and after it nobody is alone for want of
		// the others' first beat.
		p.set(func() { p.down = true })
		time.Sleep(time.Hour)
		sizes(t, 2, a, b)
		p.set(func() { p.down = false })
		for range 100 {
			time.Sleep(DefaultEvery / 50)
			sizes(t, 2, a, b)
		}

		// An instance that dies is given up.
		b.stop()
		time.Sleep(2*DefaultTTL + 2*DefaultEvery)
		synctest.Wait()
		sizes(t, 1, a)
		a.Close()
		a.Close()
		if len(p.until) != 1 { // the one that died
			t.Errorf("the list has %v", p.until)
		}
		b.Close()
	})
}

func TestBeatsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		f := Join(p, Options{Every: time.Second})
		time.Sleep(time.Minute)
		f.Close()
		if p.beats < 60 || p.beats > 121 {
			t.Errorf("%d beats in a minute, want one in 500 ms to 1 s", p.beats)
		}
	})
}

func TestEachBeatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{down: true}
		var told []error
		f := Join(p, Options{OnBeat: func(err error) { told = append(told, err) }})
		synctest.Wait()
		p.set(func() { p.down = false })
		time.Sleep(DefaultEvery)
		f.Close()
		if len(told) < 2 || told[0] == nil || told[len(told)-1] != nil {
			t.Errorf("told %v", told)
		}
	})
}

// A list that does not answer is waited for no longer than it has, and there is one
// call of it at most.
func TestRollThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{mute: make(chan struct{})}
		var told []error
		f := Join(p, Options{OnBeat: func(err error) { told = append(told, err) }})
		time.Sleep(time.Minute)
		start := time.Now()
		f.Close()
		if took := time.Since(start); took > DefaultEvery {
			t.Errorf("closing took %s", took)
		}
		if len(told) < 10 || !errors.Is(told[0], errSilent) || f.Size() != 1 {
			t.Errorf("told %v, and %d are counted", told, f.Size())
		}
		close(p.mute)
		synctest.Wait()
		if p.beats != 1 {
			t.Errorf("%d calls were under way at once", p.beats)
		}
	})
}

// Beats that fail in between do not make a fleet smaller.
func TestTally(t *testing.T) {
	down := errors.New("down")
	k := tally{size: 1}
	f := func(live int, err error, at, want int) {
		t.Helper()
		k = k.step(chain.Roster{Live: live}, err, time.Duration(at)*time.Second, 10*time.Second)
		if k.size != want {
			t.Errorf("at %d s: %d, want %d", at, k.size, want)
		}
	}
	f(5, nil, 0, 5)
	f(2, nil, 3, 5)
	f(0, down, 6, 5)
	f(2, nil, 9, 5)
	f(3, nil, 15, 5)
	f(2, nil, 19, 3) // the most that were there
	f(0, nil, 20, 3)
	f(0, nil, 30, 1) // this one is
}
