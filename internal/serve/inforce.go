package serve

import (
	"cmp"

	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules/source"
)

// inForce returns what this instance reports about the rules that it applies.
func (s *server) inForce() admin.InForce {
	set, st := s.rules.live.Set(), s.rules.Status()
	self := s.board.Self()
	return admin.InForce{
		ID: self.ID, Name: self.Name, Version: s.version,
		Hash: st.Hash, Since: st.LoadedAt.UTC(), Rules: len(set.Rules()), Instances: set.Instances(),
		Layers: layersOf(&st),
	}
}

// layersOf returns the state of the sources of the rules.
func layersOf(st *source.Status) (all []admin.Layer) {
	for _, l := range st.Layers {
		is := admin.Layer{
			Name: l.Name, Revision: cmp.Or(l.Revision, l.Hash), Author: l.Author, Reason: l.Reason, Since: l.Since.UTC(),
			Reached: l.Reached.UTC(), Error: l.Error, Copy: l.FromCopy,
		}
		if r := l.Refused; r != nil {
			is.Refused = &admin.RefusedRules{Revision: r.Revision, Since: r.Since.UTC(), Message: r.Message}
		}
		all = append(all, is)
	}
	return all
}

// layerStats returns layersOf for the metrics.
func layerStats(st *source.Status) (all []telemetry.LayerStats) {
	for _, l := range layersOf(st) {
		all = append(all, telemetry.LayerStats{
			Name: l.Name, Revision: l.Revision, Since: l.Since, Reached: l.Reached, Down: l.Error != "" || l.Copy, Refused: l.Refused != nil,
		})
	}
	return all
}

// answerRules answers the question of another instance about the rules in force here.
func (s *server) answerRules([]byte) []byte {
	is := s.inForce()
	return is.Answer()
}
