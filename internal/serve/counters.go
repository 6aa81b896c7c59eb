package serve

import (
	"errors"
	"os"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/store/memory"
)

// localCounters are the counters of this process, if they are not shared.
type localCounters struct {
	memory      *memory.Store
	shares      *split.Store // decides by memory, and by this instance's share for split limits
	snapshotter *snapshotter
	shortage    *shortage
}

// open opens the counters (those of a fleet, of a predecessor, of a snapshot, or empty ones) and
// what needs them: the board, the gate, deferred requests.
func (s *server) open(handed string) {
	if s.shared != nil {
		if handed != "" {
			if err := s.shared.TakeOver(handed); err != nil {
				s.log.Warn("what the predecessor counted while Redis is away is lost", "err", err)
			}
		}
		s.shared.Join()
		s.counters, s.limited = s.shared, s.shared
		s.metrics.WatchShared(s.shared.stats)
		s.metrics.WatchQueue(s.shared.Waiting)
	} else {
		in := s.restore(handed)
		s.local = &localCounters{
			memory:      in,
			shares:      split.New(chain.Adapt(in), split.Options{Members: s.members, Local: in, Whole: true}),
			snapshotter: newSnapshotter(in, s.config.Store.Memory, s.remember, s.log),
			shortage:    watchShortage(in.Stats, s.config.Store.Memory.Max, s.log),
		}
		s.counters = in
		s.metrics.WatchStore(
			func() telemetry.StoreStats { return telemetry.StoreStats(in.Stats()) },
			func(l *tidegate.Limit) telemetry.StoreStats { return telemetry.StoreStats(in.LimitStats(l)) })
		queued := queue.New(s.local.shares).Time(s.metrics.Takes())
		s.limited = queued
		s.metrics.WatchQueue(queued.Waiting)
	}
	handedOver := handed
	if handed == "" {
		handed = s.kept()
	}
	s.recall(handed)
	s.followBoard(handedOver)
	if err := s.past.takeOver(handedOver); err != nil {
		s.log.Warn("the history of rules of the predecessor is lost", "err", err)
	}
	s.metrics.WatchSignals(pressure.Names, s.signals.Signal)
	s.signals.Serving(s.busyWith)
	if s.rules != nil {
		s.metrics.WatchShedding(s.shedding)
		s.gate = tidegate.NewGate(s.metrics.Matcher(s.rules.Live()), s.behind(s.limited)).Observe(s.observe)
	}
	s.openDeferred(handedOver != "")
	s.lately.start(s.metrics.Totals)
	if s.checkDoor.listener != nil {
		s.checkDoor.callers = s.newCallers("check")
	}
	if s.respDoor.listener != nil {
		s.respDoor.callers = s.newCallers("resp")
	}
	if s.rlsDoor.listener != nil {
		s.openRLSCounts()
	}
}

// snapshot writes the counters to the file of kept when the process ends. The rest has files of its
// own, or ends with the process.
func (s *server) snapshot(file string) error { return s.local.snapshotter.handOver(file) }

// handOver writes for a successor what only this process has, and lets go of the rest. With Redis,
// the counters are those counted locally during an outage.
func (s *server) handOver(file string) error {
	if s.shared != nil {
		return errors.Join(s.deferred.close(), s.shared.HandOver(file), s.remember(file), s.past.handOver(file))
	}
	return errors.Join(s.deferred.close(), s.local.snapshotter.handOver(file), s.board.HandOver(file+ofBoard), s.past.handOver(file))
}

// kept returns the file that counters are written to when the process ends; "" if there is none.
func (s *server) kept() string {
	if s.shared != nil {
		return ""
	}
	return s.config.Store.Memory.Snapshot
}

// resumed is called when a successor has failed to take over.
func (s *server) resumed() {
	if s.past.History != nil {
		s.past.Resume()
	}
	if s.local != nil {
		s.local.snapshotter.resume()
		s.board.Resume()
		if file := s.kept(); file != "" {
			_ = os.Remove(file + ofBoard) // nobody else reads it
		}
	}
	if s.shared != nil {
		s.shared.Resume()
	}
	s.openDeferred(true)
}
