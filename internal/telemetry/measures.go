package telemetry

// NotHolding is the kind for measures that cannot be in force under the current rules.
const NotHolding = "not_holding"

// measureKinds are always exported, even if there are none.
var measureKinds = []string{"ban", "override", NotHolding}

var measuresDesc = describe("tidegate_measures",
	"What operators have ordered and has not ended, by kind; not_holding: the rules in force have no place for it.", "kind")

// WatchMeasures exports how many measures are in force, by kind.
func (m *Metrics) WatchMeasures(inForce func() map[string]int) { m.watched.measures.Store(&inForce) }

func (w *watched) collectMeasures(emit emit) {
	inForce := w.measures.Load()
	if inForce == nil {
		return
	}
	n := (*inForce)()
	for _, kind := range measureKinds {
		emit(measuresDesc, gauge, float64(n[kind]), kind)
	}
}
