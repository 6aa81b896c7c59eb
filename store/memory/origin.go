package memory

import "tidegate.dev/tidegate/internal/algo"

// The state of a bucket is an instant, kept in 59 bits as the ticks since the
// store's origin: 17 years. A clock that comes near the end of that, or is before
// it, makes the store choose another origin, and rewrite all buckets.
const (
	originMargin = int64(1) << 57 // 4 years: how far a clock may be set back
	originSpan   = 3 * originMargin
)

// originCovers reports whether the instants of buckets at now fit their bits, counted from origin.
func originCovers(origin, now int64) bool { return uint64(now-origin) <= uint64(originSpan) }

// now returns the store's time. The caller owns no slot.
func (s *Store) now() int64 {
	now := s.clock.now()
	if !originCovers(s.origin.Load(), now) {
		s.moveOrigin(now)
	}
	return now
}

// moveOrigin counts from another origin. A caller that decides meanwhile either finds
// that the origin does not cover now, and waits here, or loses its slot, whose generation changes.
func (s *Store) moveOrigin(now int64) {
	s.moving.Lock()
	defer s.moving.Unlock()
	old := s.origin.Load()
	if originCovers(old, now) {
		return
	}
	origin := now - originMargin
	for _, t := range s.allTables() {
		if lim := t.lastLimit.Load(); t.kind == buckets && lim != nil {
			for g := range t.segments() {
				s.rebase(lim, g, old, origin, now)
			}
		}
	}
	s.origin.Store(origin)
}

// rebase rewrites the buckets of g. One that lies in the future, because the clock was
// set back, is moved to now with its level, as its law says. It still drains at the pace of the
// limit under which it was written, which need not be lim.
func (s *Store) rebase(lim *compiledLimit, g *segment, from, to, now int64) {
	for i := range int(g.slots.Load()) {
		sl := &g.chunks[i/chunkSlots].Load()[i%chunkSlots]
		if sl.tag.Load() == 0 {
			continue
		}
		word := sl.seize()
		meta := sl.meta.Load()
		c := cell{meta & slowMask, word & fastMask}
		b := bucketAt(c, from)
		law := lim.lawOf(b)
		kept, _ := law.Take(b, now, algo.Ask{Copies: 1})
		c = bucketCellAt(kept, to)
		sl.meta.Store(meta&^slowMask | c.slow)
		sl.word.Store((word+genOne)&genMask | c.fast)
	}
}
