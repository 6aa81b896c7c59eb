package telemetry

// PlaneStats is the state of the connection to a control plane that sends rules (xDS).
type PlaneStats struct {
	Connected         bool
	Failing           bool // what it sent last is not in force
	Updates, Rejected int
	Domains           int
}

// WatchPlane exports what stats returns about the control plane.
func (m *Metrics) WatchPlane(stats func() PlaneStats) { m.watched.plane.Store(&stats) }

var (
	planeConnectedDesc = describe("tidegate_xds_connected", "Whether there is a connection to the control plane.")
	planeCurrentDesc   = describe("tidegate_xds_current", "Whether the rules that the control plane sent last are in force; 0: they were refused.")
	planeResponsesDesc = describe("tidegate_xds_responses_total", "Responses of the control plane that changed rules, or were refused, by outcome.", "outcome")
	planeDomainsDesc   = describe("tidegate_xds_domains", "Domains in force that the control plane sent.")
)

func (s *PlaneStats) collect(emit emit) {
	emit(planeConnectedDesc, gauge, number(s.Connected))
	emit(planeCurrentDesc, gauge, number(!s.Failing))
	emit(planeResponsesDesc, counter, float64(s.Updates), "ok")
	emit(planeResponsesDesc, counter, float64(s.Rejected), "failed")
	emit(planeDomainsDesc, gauge, float64(s.Domains))
}
