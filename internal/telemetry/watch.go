package telemetry

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
)

// watched has functions that return what other packages count. They are called at each scrape; nil
// ones export nothing.
type watched struct {
	limits   atomic.Pointer[[]*tidegate.Limit]
	store    atomic.Pointer[storeFuncs]
	waiting  atomic.Pointer[func() int64]
	rules    atomic.Pointer[func() RulesStatus]
	clamped  atomic.Pointer[func(rule string) int64]
	trust    atomic.Pointer[func() TrustStats]
	signals  atomic.Pointer[signalsFunc]
	shared   atomic.Pointer[func() SharedStats]
	logs     atomic.Pointer[func() map[string]LogStats]
	plane    atomic.Pointer[func() PlaneStats]
	quotas   atomic.Pointer[func() QuotaStats]
	deferred atomic.Pointer[func() DeferredStats]
	shedding atomic.Pointer[func() []ShedStats]

	measures atomic.Pointer[func() map[string]int]
}

// StoreStats describe the memory of a store; see memory.Stats.
type StoreStats struct {
	Bytes, Keys, Evicted, Forgotten, RefusedFull int64
}

type storeFuncs struct {
	total func() StoreStats
	of    func(*tidegate.Limit) StoreStats
}

// WatchStore exports the memory of a store: in total, and for each rule the sum over its limits; see
// [Metrics.SetRules].
func (m *Metrics) WatchStore(total func() StoreStats, of func(*tidegate.Limit) StoreStats) {
	m.watched.store.Store(&storeFuncs{total, of})
}

// WatchQueue exports how many requests wait in queues.
func (m *Metrics) WatchQueue(waiting func() int64) { m.watched.waiting.Store(&waiting) }

// RulesStatus describes the rules in force and their reloads.
type RulesStatus struct {
	Reloads, Failed int
	LoadedAt        time.Time // those in force
	Revision        string    // of those in force: a hash of their files; "" if it is not known
	Failing         bool      // what is in the files is not in force
	FailingSince    time.Time // zero if it is not Failing
	Layers          []LayerStats
}

// WatchRules exports the RulesStatus.
func (m *Metrics) WatchRules(status func() RulesStatus) { m.watched.rules.Store(&status) }

// WatchCosts exports how often a cost was outside of the min and max of its rule.
func (m *Metrics) WatchCosts(clamped func(rule string) int64) { m.watched.clamped.Store(&clamped) }

// LogStats count the lines of a log that were lost; see logsink.Stats.
type LogStats struct{ Dropped, Errors uint64 }

// WatchLogs exports the LogStats of each log, by its name.
func (m *Metrics) WatchLogs(stats func() map[string]LogStats) { m.watched.logs.Store(&stats) }

type signalsFunc struct {
	names []string
	value func(name string) (float64, bool)
}

// WatchSignals exports the signals of elastic limits and of shedding that have a value.
func (m *Metrics) WatchSignals(names []string, value func(name string) (float64, bool)) {
	m.watched.signals.Store(&signalsFunc{names, value})
}

var (
	totalBytesDesc = describe("tidegate_store_bytes", "Memory that all counters take.")
	totalKeysDesc  = describe("tidegate_store_keys", "Keys that are remembered, idle ones not yet swept included.")
	totalLostDesc  = describe("tidegate_store_forgotten_total", "Keys dropped at the memory bound that still had used events, those of no rule in the files included: of CL.THROTTLE, and of overrides.")
	bytesDesc      = describe("tidegate_rule_store_bytes", "Memory that the counters of a rule take.", "rule")
	keysDesc       = describe("tidegate_rule_store_keys", "Keys of a rule that are remembered.", "rule")
	evictedDesc    = describe("tidegate_rule_store_evicted_total", "Keys forgotten that held nobody back.", "rule")
	forgottenDesc  = describe("tidegate_rule_store_forgotten_total", "Keys dropped at the memory bound that still had used events.", "rule")
	fullDesc       = describe("tidegate_rule_store_refused_total", "Requests refused because their key found no room.", "rule")
	waitingDesc    = describe("tidegate_queue_waiting", "Requests that wait in a queue now.")
	reloadsDesc    = describe("tidegate_rules_reloads_total", "Reloads of the rules after the first load, by outcome.", "outcome")
	loadedDesc     = describe("tidegate_rules_loaded_timestamp_seconds", "When the rules in force were loaded.")
	currentDesc    = describe("tidegate_rules_current", "Whether the rules in force are those in the files; 0: the last reload failed.")
	revisionDesc   = describe("tidegate_rules_info", "The revision of the rules in force, a hash of their files; always 1. Instances with the same rules show the same.", "revision")
	rulesErrorDesc = describe("tidegate_rules_error_timestamp_seconds", "Since when what is in the rule files cannot be put in force; absent if it is in force. /rules says why.")
	clampedDesc    = describe("tidegate_rule_cost_clamped_total", "Costs that were outside of min and max of their rule, since it was loaded.", "rule")
	signalDesc     = describe("tidegate_signal", "What elastic limits go by, and what requests are shed by: seconds, requests, a share of 1, or as pushed.", "signal")
	logLostDesc    = describe("tidegate_log_dropped_total", "Lines of a log that were dropped because its reader stood still or it could not be written.", "log")
	logErrorsDesc  = describe("tidegate_log_write_errors_total", "Writes of a log that failed, as on a full disk; they are tried again.", "log")

	watchedDescs = []*prometheus.Desc{
		totalBytesDesc, totalKeysDesc, totalLostDesc, bytesDesc, keysDesc, evictedDesc, forgottenDesc, fullDesc,
		waitingDesc, reloadsDesc, loadedDesc, currentDesc, revisionDesc, rulesErrorDesc, clampedDesc, signalDesc,
		logLostDesc, logErrorsDesc, planeConnectedDesc, planeCurrentDesc, planeResponsesDesc, planeDomainsDesc,
		quotaStreamsDesc, quotaBucketsDesc, quotaCountersDesc, quotaAssignmentsDesc, quotaRefusedDesc, quotaLateDesc,
		deferredWaitingDesc, deferredEndedDesc, deferredLinesDesc, deferredBytesDesc, deferredMaxDesc, deferredOldestDesc, deferredUnwrittenDesc, deferredOpenDesc,
		measuresDesc, shedStepsDesc, shedMostDesc, shedMovesDesc, shedRequestsDesc,
		layerInfoDesc, layerSinceDesc, layerReachedDesc, layerUpDesc, layerRefusedDesc, layerBehindDesc,
	}
)

func (w *watched) collect(emit emit) {
	if waiting := w.waiting.Load(); waiting != nil {
		emit(waitingDesc, gauge, float64((*waiting)()))
	}
	if rules := w.rules.Load(); rules != nil {
		s := (*rules)()
		s.collect(emit)
	}
	w.collectMeasures(emit)
	if shedding := w.shedding.Load(); shedding != nil {
		collectShedding(emit, (*shedding)())
	}
	if deferred := w.deferred.Load(); deferred != nil {
		s := (*deferred)()
		s.collect(emit)
	}
	if quotas := w.quotas.Load(); quotas != nil {
		s := (*quotas)()
		s.collect(emit)
	}
	if plane := w.plane.Load(); plane != nil {
		s := (*plane)()
		s.collect(emit)
	}
	if trust := w.trust.Load(); trust != nil {
		s := (*trust)()
		s.collect(emit)
	}
	if signals := w.signals.Load(); signals != nil {
		for _, name := range signals.names {
			if v, ok := signals.value(name); ok {
				emit(signalDesc, gauge, v, name)
			}
		}
	}
	if logs := w.logs.Load(); logs != nil {
		for name, s := range (*logs)() {
			emit(logLostDesc, counter, float64(s.Dropped), name)
			emit(logErrorsDesc, counter, float64(s.Errors), name)
		}
	}
	if shared := w.shared.Load(); shared != nil {
		s := (*shared)()
		s.collect(emit)
	}
	w.collectLimits(emit)
}

func (s *RulesStatus) collect(emit emit) {
	emit(reloadsDesc, counter, float64(s.Reloads), "ok")
	emit(reloadsDesc, counter, float64(s.Failed), "failed")
	emit(loadedDesc, gauge, float64(s.LoadedAt.UnixMilli())/1000)
	emit(currentDesc, gauge, number(!s.Failing))
	if s.Revision != "" {
		emit(revisionDesc, gauge, 1, s.Revision)
	}
	if !s.FailingSince.IsZero() {
		emit(rulesErrorDesc, gauge, float64(s.FailingSince.UnixMilli())/1000)
	}
	collectLayers(emit, s.Layers)
}

// collectLimits exports what is counted by limit, summed up for each rule in force.
func (w *watched) collectLimits(emit emit) {
	byRule := make(map[string][]*tidegate.Limit)
	if limits := w.limits.Load(); limits != nil {
		for _, l := range *limits {
			byRule[ruleOf(l)] = append(byRule[ruleOf(l)], l)
		}
	}
	store, clamped := w.store.Load(), w.clamped.Load()
	if store != nil {
		total := store.total()
		emit(totalBytesDesc, gauge, float64(total.Bytes))
		emit(totalKeysDesc, gauge, float64(total.Keys))
		emit(totalLostDesc, counter, float64(total.Forgotten))
	}
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		if clamped != nil {
			emit(clampedDesc, counter, float64((*clamped)(rule)), rule)
		}
		if store != nil {
			store.collect(emit, rule, byRule[rule])
		}
	}
}

func (s *storeFuncs) collect(emit emit, rule string, limits []*tidegate.Limit) {
	var sum StoreStats
	for _, l := range limits {
		st := s.of(l)
		sum.Bytes += st.Bytes
		sum.Keys += st.Keys
		sum.Evicted += st.Evicted
		sum.Forgotten += st.Forgotten
		sum.RefusedFull += st.RefusedFull
	}
	emit(bytesDesc, gauge, float64(sum.Bytes), rule)
	emit(keysDesc, gauge, float64(sum.Keys), rule)
	emit(evictedDesc, counter, float64(sum.Evicted), rule)
	emit(forgottenDesc, counter, float64(sum.Forgotten), rule)
	emit(fullDesc, counter, float64(sum.RefusedFull), rule)
}
