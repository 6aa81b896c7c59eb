package telemetry

import (
	"strings"
	"time"
)

// LayerStats is the state of a source of the rules.
type LayerStats struct {
	Name, Revision string    // name, and the revision in force
	Since          time.Time // when that came into force
	Reached        time.Time // when the source last answered; zero for a file, or if it never has
	Down           bool      // the source does not answer
	Refused        bool      // its newest revision cannot be put in force
}

// Bounds of the labels.
const (
	maxLayers   = 16
	maxLabel    = 128 // bytes of a name
	maxRevision = 64
)

var (
	layerInfoDesc    = describe("tidegate_rules_layer_info", "The revision of a source of rules that is in force; always 1. Instances that follow the same source should show the same.", "layer", "revision")
	layerSinceDesc   = describe("tidegate_rules_layer_since_timestamp_seconds", "Since when the revision of a source of rules is in force.", "layer")
	layerReachedDesc = describe("tidegate_rules_layer_reached_timestamp_seconds", "When a source of rules last answered. Absent for files, and if it never has.", "layer")
	layerUpDesc      = describe("tidegate_rules_layer_up", "Whether a source of rules answers; 0: what is in force may be old. tidegate rules status says why.", "layer")
	layerRefusedDesc = describe("tidegate_rules_layer_refused", "Whether what a source of rules has now is refused. tidegate rules status says why.", "layer")
	layerBehindDesc  = describe("tidegate_rules_layer_behind", "Whether the newest revision of a source of rules is not in force, or may not be: it is refused, or the source does not answer.", "layer")
)

// collectLayers exports the first few sources; long names are cut.
func collectLayers(emit emit, layers []LayerStats) {
	seen := make(map[string]bool)
	for _, l := range layers[:min(len(layers), maxLayers)] {
		name := cut(l.Name, maxLabel)
		if seen[name] { // series must not have equal labels
			continue
		}
		seen[name] = true
		emit(layerInfoDesc, gauge, 1, name, cut(l.Revision, maxRevision))
		emit(layerSinceDesc, gauge, float64(l.Since.UnixMilli())/1000, name)
		if !l.Reached.IsZero() {
			emit(layerReachedDesc, gauge, float64(l.Reached.UnixMilli())/1000, name)
		}
		emit(layerUpDesc, gauge, number(!l.Down), name)
		emit(layerRefusedDesc, gauge, number(l.Refused), name)
		emit(layerBehindDesc, gauge, number(l.Down || l.Refused), name)
	}
}

// cut returns the beginning of a label.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
