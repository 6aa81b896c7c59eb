package serve

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules"
)

// ofBoard is the suffix for the file that hands measures to a successor, next to the file with the
// counters. With Redis, the store of the fleet has the measures.
const ofBoard = ".board"

// openBoard opens the board for bans and overrides, with those of the state file.
func (s *server) openBoard() (err error) {
	if s.shared != nil {
		s.board, _ = board.Of(s.shared.Store)
		return nil
	}
	s.board, err = board.Open(board.Options{
		Self: board.Node{ID: rand.Text(), Name: s.nodeName()}, File: s.config.Admin.State, Log: s.log,
	})
	return err
}

// followBoard puts measures in force from now on, beginning with those that a predecessor has
// handed over, and answers the questions of other instances.
func (s *server) followBoard(handed string) {
	if s.shared == nil && handed != "" {
		if err := s.board.TakeOver(handed + ofBoard); err != nil {
			s.log.Warn("bans and overrides of the predecessor are lost, except for those in admin.state", "err", err)
		}
	}
	s.board.Answer(admin.OffendersTopic, s.offenders.Answer)
	s.board.Answer(admin.SeriesTopic, s.answerSeries)
	if s.rules != nil {
		s.board.Answer(admin.RulesTopic, s.answerRules)
	}
	switch {
	case s.rules == nil:
		s.board.Start()
	case s.shared != nil:
		fleet.Follow(s.shared.Store, s.rules.live)
	default:
		told := make(map[string]bool)
		s.board.Watch(func(all []board.Record) { told = s.setMeasures(all, told) })
		s.board.Start()
	}
}

// setMeasures puts all records in force. It logs problems that are not in told, and returns all
// current ones.
func (s *server) setMeasures(all []board.Record, told map[string]bool) map[string]bool {
	now := make(map[string]bool)
	tell := func(err error) {
		text := err.Error()
		if !told[text] && !now[text] {
			s.doesNotHold(err)
		}
		now[text] = true
	}
	measures := make([]rules.Measure, 0, len(all))
	for _, r := range all {
		var m rules.Measure
		if err := json.Unmarshal(r.Body, &m); err != nil {
			tell(fmt.Errorf("measure %s: %w", r.ID, err))
			continue
		}
		measures = append(measures, m)
	}
	for _, p := range s.rules.live.SetMeasures(measures) {
		tell(p)
	}
	return now
}

// measures counts the measures in force by kind, and those that cannot be in force.
func (r *ruleSource) measures() map[string]int {
	all, problems := r.live.Measures()
	broken := make(map[string]bool, len(problems))
	for i := range problems {
		broken[problems[i].ID] = true
	}
	n := make(map[string]int)
	for i := range all {
		if broken[all[i].ID] {
			n[telemetry.NotHolding]++
		} else {
			n[string(all[i].Kind)]++
		}
	}
	return n
}

// doesNotHold logs that a measure cannot be in force here.
func (s *server) doesNotHold(err error) {
	s.log.Warn("a ban or an override does not hold here; tidegate measures lists them", "err", err)
}
