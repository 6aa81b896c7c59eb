package telemetry

// QuotaStats is what the quota service for Envoy has assigned.
type QuotaStats struct {
	Streams, Buckets, Counters int
	Changed, Extended, Denied  uint64
	Refused, Late              uint64
}

// WatchQuotas shows how things are with the quota service.
func (m *Metrics) WatchQuotas(stats func() QuotaStats) { m.watched.quotas.Store(&stats) }

var (
	quotaStreamsDesc     = describe("tidegate_rlqs_streams", "Streams of proxies that are open at the quota service.")
	quotaBucketsDesc     = describe("tidegate_rlqs_buckets", "Buckets that proxies have assignments for, of all streams.")
	quotaCountersDesc    = describe("tidegate_rlqs_counters", "Counters that are divided among proxies, or have something out.")
	quotaAssignmentsDesc = describe("tidegate_rlqs_assignments_total", "Parts of limits that proxies were assigned: a new bucket (changed), the same again (extended), or nothing (denied).", "kind")
	quotaRefusedDesc     = describe("tidegate_rlqs_refused_total", "Reports of buckets that were denied, as there are too many or their ids are too long.")
	quotaLateDesc        = describe("tidegate_rlqs_late_total", "Assignments that were not sent, as the proxy did not read in time.")
)

func (s *QuotaStats) collect(emit emit) {
	emit(quotaStreamsDesc, gauge, float64(s.Streams))
	emit(quotaBucketsDesc, gauge, float64(s.Buckets))
	emit(quotaCountersDesc, gauge, float64(s.Counters))
	emit(quotaAssignmentsDesc, counter, float64(s.Changed), "changed")
	emit(quotaAssignmentsDesc, counter, float64(s.Extended), "extended")
	emit(quotaAssignmentsDesc, counter, float64(s.Denied), "denied")
	emit(quotaRefusedDesc, counter, float64(s.Refused))
	emit(quotaLateDesc, counter, float64(s.Late))
}
