package serve

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/store/memory"
)

// shortage reports, in the log and in health, that the memory for counters is used up: keys with
// used events are forgotten, or new ones are not stored.
type shortage struct {
	stats func() memory.Stats
	max   int64 // bytes
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{} // closed when the goroutine has ended

	mu    sync.Mutex
	last  memory.Stats // under mu
	began memory.Stats // under mu: as of before the shortage
	since time.Time    // under mu: since when; zero if there is none
	grew  time.Time    // under mu: when a loss was last seen
}

const (
	shortageEvery = time.Second
	// shortageOver is how long after the last loss the shortage counts as over. It also limits how
	// often that is logged.
	shortageOver = time.Minute
)

// full is the health status if the memory does not suffice for all keys.
const full = "full"

// watchShortage looks at stats every second until close; most is the memory bound, and 0 the default.
func watchShortage(stats func() memory.Stats, most int64, log *slog.Logger) *shortage {
	if most <= 0 {
		most = memory.DefaultMaxBytes
	}
	s := &shortage{stats: stats, max: most, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *shortage) run() {
	defer close(s.done)
	tick := time.NewTicker(shortageEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			s.look(now)
		}
	}
}

// look compares the losses so far with those at the last call.
func (s *shortage) look(now time.Time) {
	is := s.stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.last
	s.last = is
	switch lost := is.Forgotten > was.Forgotten || is.RefusedFull > was.RefusedFull; {
	case lost && s.since.IsZero():
		s.since, s.grew, s.began = now, now, was
		s.log.Warn("the memory of the counters is used up: keys are forgotten, or new ones are refused", "max", s.max,
			"forgotten", is.Forgotten-was.Forgotten, "refused", is.RefusedFull-was.RefusedFull, "keys", is.Keys)
	case lost:
		s.grew = now
	case !s.since.IsZero() && now.Sub(s.grew) >= shortageOver:
		s.log.Info("the memory of the counters suffices again", "after", s.grew.Sub(s.since).Round(time.Second),
			"forgotten", is.Forgotten-s.began.Forgotten, "refused", is.RefusedFull-s.began.RefusedFull)
		s.since = time.Time{}
	}
}

// health returns the health for /healthz.
func (s *shortage) health() admin.Health {
	s.look(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return admin.Health{Status: "ok"}
	}
	return admin.Health{Status: full, Since: s.since, Why: fmt.Sprintf(
		"the memory of the counters is used up (%d bytes, store.memory.max): %d keys with used events were forgotten since, %d requests found no room",
		s.max, s.last.Forgotten-s.began.Forgotten, s.last.RefusedFull-s.began.RefusedFull)}
}

func (s *shortage) close() {
	close(s.stop)
	<-s.done
}
