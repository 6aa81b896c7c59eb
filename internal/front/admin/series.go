package admin

import (
	"net/http"
	"slices"
	"time"
)

// Series is what was decided in the last minutes on this instance, in steps.
type Series struct {
	Node  string    `json:"node,omitempty"` // the instance: others of a fleet have their own
	From  time.Time `json:"from"`           // when the first step began
	Step  int       `json:"step_seconds"`   // how long each is
	Lines []Line    `json:"series"`
}

// Line is how often decisions of a rule had an outcome, step by step, the oldest first.
type Line struct {
	Rule    string   `json:"rule"`
	Outcome string   `json:"outcome"`
	Counts  []uint32 `json:"counts"`
}

// series answers what was decided lately.
func (s *server) series(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := known(q, "rule", "outcome", "step"); err != nil {
		return nil, err
	}
	if s.Series == nil {
		return nil, problemf(http.StatusNotFound, "There are no series here.")
	}
	by := 1
	switch q.Get("step") {
	case "", "1":
	case "5":
		by = 5
	default:
		return nil, problemf(http.StatusBadRequest, "step is 1 or 5 seconds, and not %q.", q.Get("step"))
	}
	is := s.Series()
	is.Lines = slices.DeleteFunc(is.Lines, func(l Line) bool { return !fits(q, "rule", l.Rule) || !fits(q, "outcome", l.Outcome) })
	return is.coarser(by), nil
}

// coarser joins so many steps, beginning with the newest; older ones that are fewer are
// left out.
func (s Series) coarser(by int) Series {
	if by == 1 {
		return s
	}
	for i := range s.Lines {
		counts := s.Lines[i].Counts
		left := len(counts) % by
		if i == 0 {
			s.From = s.From.Add(time.Duration(left*s.Step) * time.Second)
		}
		joined := make([]uint32, 0, len(counts)/by)
		for part := range slices.Chunk(counts[left:], by) {
			sum := uint64(0)
			for _, n := range part {
				sum += uint64(n)
			}
			joined = append(joined, uint32(min(sum, 1<<32-1)))
		}
		s.Lines[i].Counts = joined
	}
	s.Step *= by
	return s
}
