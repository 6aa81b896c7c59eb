package guard

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// Calls that begin about together share a round; a round that is over is given to nobody,
// even if the timer that should have said so is late.
func TestCurrentRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(memory.New(), Options{Deadline: 80 * time.Millisecond})
		defer g.Close()
		r := g.current()
		time.Sleep(9 * time.Millisecond)
		if g.current() != r {
			t.Error("another round within an eighth of the deadline")
		}
		time.Sleep(2 * time.Millisecond)
		next := g.current()
		if next == r || next.from != 11*time.Millisecond {
			t.Errorf("the round from %s after %s", next.from, g.now())
		}
		time.Sleep(80 * time.Millisecond)
		synctest.Wait()
		next.over.Store(false)
		if got := g.current(); got == next || got.ctx.Err() != nil {
			t.Error("a round that has ended")
		}
	})
}
