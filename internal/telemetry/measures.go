package telemetry

// NotHolding is the kind of measures that were ordered and do not hold by the rules in force.
const NotHolding = "not_holding"

// measureKinds are shown, also if there are none.
var measureKinds = []string{"ban", "override", NotHolding}

var measuresDesc = describe("tidegate_measures",
	"What operators have ordered and has not ended, by kind; not_holding: the rules in force have no place for it.", "kind")

// WatchMeasures shows how many measures are in force, by kind.
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
