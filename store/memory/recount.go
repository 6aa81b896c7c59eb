package memory

import (
	"fmt"
	"runtime"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// Count is how many events were counted at an instant.
type Count struct {
	At     time.Time // anywhere in the window, or in the part of one, that has them
	Events int64
}

// Recount replaces what a key has used of a limit by counts, the oldest first. They may exceed the
// limit, because others may count under a higher one. It is for programs that merge counts of others.
// The limit must count in windows: FixedWindow, Quota, SlidingWindow or SubWindows.
func (s *Store) Recount(key string, l *tidegate.Limit, counts []Count) error {
	lim, err := s.compile(l)
	if err != nil {
		return err
	}
	if lim.kind != counters && lim.kind != slidings && l.Algorithm != tidegate.SubWindows {
		return fmt.Errorf("memory: Recount(%s): %s does not count in windows", l, l.Algorithm)
	}
	used := false
	for i, c := range counts {
		if c.Events < 0 || i > 0 && c.At.Before(counts[i-1].At) {
			return fmt.Errorf("memory: Recount(%s): %d events at %s; want none below 0, the oldest first", l, c.Events, c.At)
		}
		used = used || c.Events > 0
	}
	s.withSlot(lim, s.hash.sum(key, lim.salt), s.now(), used, func(lim *compiledLimit, g *segment, old cell, last bool) (cell, bool) {
		switch {
		case lim.kind.inRecord():
			g.records.release(old.handle())
		case lim.kind == slidings:
			return slidingCell(recounted(&lim.sliding, counts)), true
		}
		inWindow, runs := lim.counter, lim.runs.WithEvents(tidegate.MaxCount)
		inWindow.Events = tidegate.MaxCount
		c, ok := cell{}, true
		for _, one := range counts {
			if one.Events == 0 {
				continue
			}
			at, n := algo.Instant(one.At), min(one.Events, 2*tidegate.MaxCount)
			if lim.kind == counters {
				wall := s.clock.wall(at)
				c = counterCell(inWindow.Force(counter(c), lim.span(wall), wall, n))
			} else if c, ok = lim.forceRecord(&runs, g, c, at, n, last); !ok {
				break
			}
		}
		return c, ok
	})
	runtime.KeepAlive(s)
	return nil
}

// recounted returns the state of a sliding window with these counts.
func recounted(law *algo.SlidingLaw, counts []Count) (s algo.Sliding) {
	for _, one := range counts {
		window := algo.Instant(one.At) / algo.Micro / law.Period
		switch {
		case window == s.Window+1:
			s.Prev, s.Cur = s.Cur, 0
		case window != s.Window:
			s.Prev, s.Cur = 0, 0
		}
		s.Window = window
		s.Cur = min(s.Cur+min(one.Events, 2*tidegate.MaxCount), 2*tidegate.MaxCount)
	}
	return s
}
