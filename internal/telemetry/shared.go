package telemetry

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// SharedStats describe the calls to a store that a fleet shares, and what answered when it
// could not. All but State, Instances, ClockOffset, InFlight, Backlog,
// Leases, LeasedEvents, EventualLag, Regions and Usage only grow.
type SharedStats struct {
	State     string // "ok", "partial", "degraded" or "recovering"
	Instances int    // how many share the counters
	// ClockOffset is how many seconds the clock of this process is ahead; nil means not known.
	ClockOffset *float64

	Denied   uint64 // refused because the store had refused the same shortly before
	Shared   uint64 // answered by a call that several requests shared
	Calls    uint64 // calls to the store, for requests
	InFlight int64  // calls that have not come back

	Answered, Rejected, Errors, Timeouts, Busy int64 // what became of calls
	Probes                                     int64 // of a store that did not answer

	Servers map[string]ServerStats // of a cluster or of shards, by address
	Usage   []ServerUsage          // of every server that has reported it lately
	Unasked map[string]int64       // requests that the store works but cannot decide, by rule

	Allowed, Closed, Admitted, Refused int64 // by on_store_failure: allow, deny, and local's two
	Evicted                            int64 // keys that the store has evicted
	Posted, Lost, Backlog              int64 // amounts admitted locally: charged later, perhaps never charged, not charged yet
	LeasesLost                         int64 // renewals of slots whose lease had run out

	Leases, LeasedEvents int64 // held now, and what may still be admitted by them

	EventualLag float64 // seconds; see fleet.Health.Lag

	Regions []RegionStats // the other regions
}

// RegionStats describe another region.
type RegionStats struct {
	Region string
	Lag    float64 // seconds: how old what is known of it may be
	CutOff bool
}

// ServerStats describe one server of a shared store.
type ServerStats struct {
	State   string
	Backlog int64
}

// maxServers bounds how many servers have metrics of their own.
const maxServers = 64

// WatchShared exports the SharedStats.
func (m *Metrics) WatchShared(stats func() SharedStats) { m.watched.shared.Store(&stats) }

var (
	stateDesc     = describe("tidegate_store_state", "How the shared store is doing: 1 for the state that it is in.", "state")
	instancesDesc = describe("tidegate_instances", "Instances that share the counters, as far as is known.")
	clockDesc     = describe("tidegate_clock_offset_seconds", "How far the clock of this process is ahead of that of the shared store; negative means behind. In a cluster, of the server that it differs from most.")
	deniedDesc    = describe("tidegate_store_remembered_total", "Requests refused without a call to the shared store, because it had refused the same shortly before.")
	sharedDesc    = describe("tidegate_store_coalesced_total", "Requests answered by a call to the shared store that several requests shared.")
	callsDesc     = describe("tidegate_store_calls_total", "Calls to the shared store to decide requests.")
	flyingDesc    = describe("tidegate_store_inflight", "Calls to the shared store that have not returned yet.")
	answersDesc   = describe("tidegate_store_answers_total", "Results of calls to the shared store; busy: too many were waiting already; rejected: it works but cannot do what was asked.", "outcome")
	unaskedDesc   = describe("tidegate_store_unasked_total", "Requests that the shared store works but cannot decide, by rule: a key of another type, a forbidden command.", "rule")
	serverDesc    = describe("tidegate_store_server_state", "How a server of the shared store is doing, in a cluster: 1 for the state that it is in. At most 64 servers, those that are not ok first.", "server", "state")
	serverBacklog = describe("tidegate_store_server_backlog", "Counters of a server that are still to be charged for what was admitted locally.", "server")
	probesDesc    = describe("tidegate_store_probes_total", "Probes of a shared store that did not answer.")
	fallbackDesc  = describe("tidegate_store_fallback_total", "Requests decided without the shared store, by on_store_failure and verdict.", "mode", "verdict")
	postedDesc    = describe("tidegate_store_posted_total", "Amounts that were admitted locally and charged to the shared store later.")
	lostDesc      = describe("tidegate_store_lost_total", "Amounts that were admitted locally and may never be charged to the shared store.")
	backlogDesc   = describe("tidegate_store_backlog", "Counters that are still to be charged for what was admitted locally.")
	leasesDesc    = describe("tidegate_store_leases_lost_total", "Renewals of slots whose lease had run out: others may have been admitted beside their holders.")

	leasesHeldDesc   = describe("tidegate_leases", "Leases that this instance holds now: events of hot keys that it took from the shared store in advance.")
	leasedEventsDesc = describe("tidegate_leased_events", "Events that this instance may still admit by its leases without asking the shared store.")
	eventualLagDesc  = describe("tidegate_eventual_lag_seconds", "How old the counts are that other instances have of the eventual limits of this one; 0 if it was not asked for any.")

	regionLagDesc    = describe("tidegate_region_lag_seconds", "How old the counts of another region may be: what it has counted since may be missing here.", "region")
	regionCutOffDesc = describe("tidegate_region_cut_off", "1 if nothing was heard of another region for five seconds, so that on_partition of each rule decides.", "region")

	evictedKeysDesc = describe("tidegate_store_evicted_keys_total", "Keys that servers of the shared store evicted because their memory was full; counters may be among them.")

	sharedDescs = []*prometheus.Desc{
		stateDesc, instancesDesc, clockDesc, deniedDesc, sharedDesc, callsDesc, flyingDesc, answersDesc, unaskedDesc, serverDesc, serverBacklog, probesDesc, fallbackDesc, postedDesc, lostDesc, backlogDesc, leasesDesc, evictedKeysDesc,
		leasesHeldDesc, leasedEventsDesc, eventualLagDesc, regionLagDesc, regionCutOffDesc,
	}
)

func (s *SharedStats) collect(emit emit) {
	for _, state := range []string{"ok", "partial", "degraded", "recovering"} {
		emit(stateDesc, gauge, number(s.State == state), state)
	}
	emit(instancesDesc, gauge, float64(s.Instances))
	if s.ClockOffset != nil {
		emit(clockDesc, gauge, *s.ClockOffset)
	}
	emit(deniedDesc, counter, float64(s.Denied))
	emit(sharedDesc, counter, float64(s.Shared))
	emit(callsDesc, counter, float64(s.Calls))
	emit(flyingDesc, gauge, float64(s.InFlight))
	emit(answersDesc, counter, float64(s.Answered), "answered")
	emit(answersDesc, counter, float64(s.Rejected), "rejected")
	emit(answersDesc, counter, float64(s.Errors), "error")
	emit(answersDesc, counter, float64(s.Timeouts), "timeout")
	emit(answersDesc, counter, float64(s.Busy), "busy")
	for rule, n := range s.Unasked {
		emit(unaskedDesc, counter, float64(n), rule)
	}
	for _, name := range s.shown() {
		server := s.Servers[name]
		for _, state := range []string{"ok", "degraded", "recovering"} {
			emit(serverDesc, gauge, number(server.State == state), name, state)
		}
		emit(serverBacklog, gauge, float64(server.Backlog), name)
	}
	emit(probesDesc, counter, float64(s.Probes))
	emit(fallbackDesc, counter, float64(s.Allowed), "allow", "admitted")
	emit(fallbackDesc, counter, float64(s.Closed), "deny", "refused")
	emit(fallbackDesc, counter, float64(s.Admitted), "local", "admitted")
	emit(fallbackDesc, counter, float64(s.Refused), "local", "refused")
	emit(postedDesc, counter, float64(s.Posted))
	emit(lostDesc, counter, float64(s.Lost))
	emit(backlogDesc, gauge, float64(s.Backlog))
	emit(leasesDesc, counter, float64(s.LeasesLost))
	emit(evictedKeysDesc, counter, float64(s.Evicted))
	emit(leasesHeldDesc, gauge, float64(s.Leases))
	emit(leasedEventsDesc, gauge, float64(s.LeasedEvents))
	emit(eventualLagDesc, gauge, s.EventualLag)
	for _, r := range s.Regions {
		emit(regionLagDesc, gauge, r.Lag, r.Region)
		emit(regionCutOffDesc, gauge, number(r.CutOff), r.Region)
	}
	collectUsage(emit, s.Usage)
}

// shown returns the servers that have metrics of their own: those that are not ok first.
func (s *SharedStats) shown() []string {
	names := slices.SortedFunc(maps.Keys(s.Servers), func(a, b string) int {
		well := func(name string) int { return int(number(s.Servers[name].State == "ok")) }
		return cmp.Or(cmp.Compare(well(a), well(b)), cmp.Compare(a, b))
	})
	return names[:min(len(names), maxServers)]
}
