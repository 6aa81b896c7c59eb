package registry

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// gossip is a list that remembers what it was told, and when.
type gossip struct {
	paper
	mu    sync.Mutex
	told  []string
	times []time.Time
}

func (g *gossip) Beat(ctx context.Context, h chain.Heartbeat) (chain.Roster, error) {
	g.mu.Lock()
	g.told, g.times = append(g.told, h.About), append(g.times, time.Now())
	g.mu.Unlock()
	r, err := g.paper.Beat(ctx, h)
	r.Clock = chain.Clock{Offset: time.Second, Within: time.Millisecond}
	if err != nil {
		r = chain.Roster{}
	}
	return r, err
}

// What is told changes from beat to beat. The second beat follows the first that was answered
// at once, so that it can tell what the answer has shown, and only that one does.
func TestBeatsTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gossip{paper: paper{down: true}}
		clocks, n := 0, 0
		f := Join(g, Options{
			About:   func() string { n++; return fmt.Sprint(n, " ", clocks) },
			OnClock: func(c chain.Clock) { clocks++ },
		})
		synctest.Wait()
		g.set(func() { g.down = false })
		time.Sleep(3 * DefaultEvery)
		f.Close()
		if len(g.told) < 4 || !slices.Equal(g.told[:4], []string{"1 0", "2 0", "3 1", "4 2"}) {
			t.Fatalf("told %q", g.told)
		}
		for i := 1; i < len(g.times); i++ {
			if pause := g.times[i].Sub(g.times[i-1]); (pause == 0) != (i == 2) || pause > DefaultEvery {
				t.Errorf("the pause before beat %d was %s", i, pause)
			}
		}
	})
}

// Who has something new to tell does so at once, and not more often than it says so.
func TestBeatAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, news := &gossip{}, "old"
		f := Join(g, Options{About: func() string { return news }})
		synctest.Wait()
		before := len(g.told)
		news = "new"
		f.Beat()
		f.Beat()
		synctest.Wait()
		if got := g.told[before:]; !slices.Equal(got, []string{"new"}) && !slices.Equal(got, []string{"new", "new"}) {
			t.Errorf("told %q at once", got)
		}
		f.Close()
	})
}
