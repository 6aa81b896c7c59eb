package serve

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
)

// storeLog logs the state of the shared store: a line per change, not per request.
type storeLog struct {
	log *slog.Logger

	mu      sync.Mutex
	trouble time.Time // under mu: since when the store has the trouble that was logged; zero if it has none
	reason  bool      // under mu: whether the reason was logged
	members bool      // under mu: whether it was logged that instances cannot be counted
	evicted time.Time // under mu: when evicted keys were last logged

	servers map[string]time.Time // under mu: like trouble, for masters of a cluster and shards
}

// stateChanged is called when the health changes.
func (s *storeLog) stateChanged(is fleet.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.membersLocked(is)
	s.serversLocked(is)
	switch ok := is.Status == fleet.OK || is.Status == fleet.Partial; { // unasked logs those
	case !ok && s.trouble.IsZero():
		s.trouble, s.reason = is.Since, is.Connection != nil
		s.log.Warn("the store does not answer: on_store_failure of each rule decides until it does", "err", is.Why)
	case !ok && !s.reason && is.Connection != nil:
		s.reason = true
		s.log.Warn("the connection to the store cannot be used", "err", is.Connection)
	case ok && !s.trouble.IsZero():
		what := "the store answers again"
		if len(s.servers) > 0 { // serversLocked logs the others
			what = "a part of the store answers again"
		}
		s.log.Info(what, "after", time.Since(s.trouble).Round(time.Millisecond))
		s.trouble = time.Time{}
	}
}

// serversLocked logs when masters of a cluster, or shards, do not answer while others do, and when
// they answer again.
func (s *storeLog) serversLocked(is fleet.Health) {
	troubled := make(map[string]time.Time)
	for _, m := range is.Servers {
		if m.Status == fleet.OK || is.Status != fleet.Partial && s.servers[m.Name].IsZero() { // if all fail, stateChanged logs it
			continue
		}
		since, told := s.servers[m.Name]
		if !told {
			since = m.Since
			s.log.Warn("a server of the store does not answer: on_store_failure decides about what is counted there until it does", "server", m.Name, "err", m.Why)
		}
		troubled[m.Name] = since
	}
	for name, since := range s.servers {
		if _, still := troubled[name]; !still {
			s.log.Info("a server of the store answers again, or has been replaced", "server", name, "after", time.Since(since).Round(time.Millisecond))
		}
	}
	s.servers = troubled
}

// membersLocked logs that heartbeats are not permitted.
func (s *storeLog) membersLocked(is fleet.Health) {
	for _, u := range is.Unasked {
		if u.Rule == "instances" && errors.Is(u.Why, tidegate.ErrCannotAsk) {
			if !s.members {
				s.members = true
				s.log.Warn("the store cannot be asked for the instances that share it: their number stays as it was last known", "err", u.Why)
			}
			return
		}
	}
	s.members = false
}

// evictedPause is the shortest time between two log lines about evicted keys.
const evictedPause = time.Minute

// evicts logs that counters may be evicted, or were.
func (s *storeLog) evicts(e fleet.Eviction) {
	if e.Evicted == 0 {
		s.log.Warn("the store may forget counters: " + e.String())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.evicted) < evictedPause {
		return
	}
	s.evicted = time.Now()
	s.log.Warn("the store has evicted keys, perhaps counters: their callers get a full limit again", "server", e.Server, "keys", e.Evicted, "maxmemory-policy", e.Policy)
}

// clock logs that the clock of this machine differs from that of the store, and when it no longer
// does.
func (s *storeLog) clock(c fleet.Clock) {
	offset := slog.Duration("offset", c.Offset.Round(time.Millisecond))
	if !c.Off() {
		s.log.Info("the clock of this machine agrees with that of the store again", offset)
		return
	}
	s.log.Warn("the clock of this machine is "+c.String()+": windows and quotas that are counted here while the store is away begin at other times than elsewhere; synchronize the clocks (NTP)", offset)
}

// unasked logs that the store fails for a rule, and when it no longer does.
func (s *storeLog) unasked(u fleet.Unasked) {
	if u.Over {
		s.log.Info("the store can be asked about the rule again", "rule", u.Rule, "after", time.Since(u.Since).Round(time.Millisecond))
		return
	}
	s.log.Warn("the store cannot be asked about a rule: its on_store_failure decides", "rule", u.Rule, "err", u.Why)
}

// region logs that counts cannot be sent to a region, and when they can again.
func (s *storeLog) region(r fleet.RegionTrouble) {
	switch {
	case r.TooLarge > 0:
		s.log.Warn("a region is not told of counters with too many windows and instances: it has the whole limit of those; use fewer windows or instances, or split the limit", "region", r.Region, "counters", r.TooLarge)
		return
	case r.Why == nil:
		s.log.Info("a region is told again what is counted here", "region", r.Region)
		return
	}
	s.log.Warn("a region cannot be told what is counted here: on_partition of each rule decides there, and it is told later", "region", r.Region, "err", r.Why)
}

// lostLease logs that slots were lost while they were held, and when that is over.
func (s *storeLog) lostLease(l fleet.LostLease) {
	if l.Over {
		s.log.Info("no slots were lost for a minute", "rule", l.Rule, "renewals", l.Count)
		return
	}
	s.log.Warn("a slot was lost while it was held: others may be admitted beside its holder", "rule", l.Rule,
		"why", "the store was away for longer than the lease, or has lost it")
}
