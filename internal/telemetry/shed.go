package telemetry

// ShedStats describe how much a rule sheds.
type ShedStats struct {
	Rule                 string
	Steps, Most          int // tenths of the classes that may be shed
	Ups, Downs, Requests int64
}

// WatchShedding exports how much each rule sheds.
func (m *Metrics) WatchShedding(stats func() []ShedStats) { m.watched.shedding.Store(&stats) }

var (
	shedStepsDesc    = describe("tidegate_shed_steps", "How much a rule sheds: tenths of the classes that may be shed, the least important first. (shed) is what the rule file says for all.", "rule")
	shedMostDesc     = describe("tidegate_shed_max_steps", "With how many steps a rule sheds everything that it may shed.", "rule")
	shedMovesDesc    = describe("tidegate_shed_moves_total", "Steps by which more (up) or less (down) is shed.", "rule", "direction")
	shedRequestsDesc = describe("tidegate_shed_requests_total", "Requests that were shed, or would have been in shadow mode.", "rule")
)

func collectShedding(emit emit, all []ShedStats) {
	for _, s := range all {
		emit(shedStepsDesc, gauge, float64(s.Steps), s.Rule)
		emit(shedMostDesc, gauge, float64(s.Most), s.Rule)
		emit(shedMovesDesc, counter, float64(s.Ups), s.Rule, "up")
		emit(shedMovesDesc, counter, float64(s.Downs), s.Rule, "down")
		emit(shedRequestsDesc, counter, float64(s.Requests), s.Rule)
	}
}
