package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Series is the decisions of the last minutes, in time steps, on one instance or on all that have
// answered.
type Series struct {
	// Nodes are the names of the instances included.
	Nodes []string `json:"nodes"`
	// Missing are the instances that have not answered, and why.
	Missing []string  `json:"missing,omitempty"`
	From    time.Time `json:"from"`         // when the first step began
	Step    int       `json:"step_seconds"` // how long each is
	Lines   []Line    `json:"series"`
	// LeftOut is how many lines did not fit into the answers of instances: those with the lowest
	// counts.
	LeftOut int `json:"left_out,omitempty"`
}

// AllRequests is the rule of lines that count each request once, however many rules apply to it.
const AllRequests = "(requests)"

// Line is how often decisions of a rule had an outcome, step by step, the oldest first.
type Line struct {
	Rule    string   `json:"rule"`
	Outcome string   `json:"outcome"`
	Counts  []uint32 `json:"counts"`
}

// SeriesQuery is what series are asked for.
type SeriesQuery struct {
	Rule    string `json:"rule,omitempty"`    // "" means all
	Outcome string `json:"outcome,omitempty"` // "" means all
	Step    int    `json:"step"`              // seconds, one of seriesSteps
}

// seriesSteps are the lengths of steps that are asked for, in seconds.
var seriesSteps = []int{1, liveStep}

// series answers what was decided lately.
func (s *server) series(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := known(q, "rule", "outcome", "step", "fleet"); err != nil {
		return nil, err
	}
	if s.Series == nil {
		return nil, problemf(http.StatusNotFound, "There are no series here.")
	}
	asked := SeriesQuery{Rule: q.Get("rule"), Outcome: q.Get("outcome"), Step: 1}
	switch q.Get("step") {
	case "", "1":
	case "5":
		asked.Step = 5
	default:
		return nil, problemf(http.StatusBadRequest, "step is 1 or 5 seconds, and not %q.", q.Get("step"))
	}
	switch q.Get("fleet") {
	case "", "true":
		return s.fleetSeries(r.Context(), asked)
	case "false":
		return s.Series().about(asked), nil
	}
	return nil, problemf(http.StatusBadRequest, "fleet is true or false, and not %q.", q.Get("fleet"))
}

// about returns the requested lines, in steps of the requested length.
func (s Series) about(q SeriesQuery) Series {
	s.Lines = slices.DeleteFunc(slices.Clone(s.Lines), func(l Line) bool {
		return q.Rule != "" && q.Rule != l.Rule || q.Outcome != "" && q.Outcome != l.Outcome
	})
	return s.coarser(q.Step)
}

// keptSteps is how many steps an instance remembers.
const keptSteps = 900

// coarser joins `by` steps into one. Steps of all instances begin at multiples of their length, so
// they can be added. Incomplete steps at the ends are left out, except the first one of an instance
// that has just started: nothing was decided before it.
func (s Series) coarser(by int) Series {
	if by <= 1 || s.Step != 1 {
		return s
	}
	left, before := 0, int(roundToStep(s.From, 1)%int64(by))
	if before != 0 && s.length() >= keptSteps {
		left, before = by-before, 0
	}
	s.From = s.From.Add(time.Duration(left-before) * time.Second)
	for i := range s.Lines {
		counts := append(make([]uint32, before), s.Lines[i].Counts...)
		counts = counts[min(left, len(counts)):]
		joined := make([]uint32, 0, len(counts)/by)
		for len(counts) >= by {
			joined = append(joined, sumOf(counts[:by]))
			counts = counts[by:]
		}
		s.Lines[i].Counts = joined
	}
	s.Step = by
	return s
}

func sumOf(counts []uint32) uint32 {
	sum := uint64(0)
	for _, n := range counts {
		sum += uint64(n)
	}
	return uint32(min(sum, 1<<32-1))
}

// roundToStep returns the number of the step that begins nearest to t.
func roundToStep(t time.Time, step int) int64 {
	length := int64(step) * 1000
	return (t.UnixMilli() + length/2) / length
}

// MergeSeries adds up the series of several instances with the same step. Their clocks may differ
// slightly, so the result is exact to a step or two.
func MergeSeries(step int, parts ...Series) Series {
	merged := Series{Nodes: []string{}, Step: step, Lines: []Line{}}
	first, end := int64(1<<62), int64(-1)
	for i := range parts {
		p := &parts[i]
		merged.Nodes = append(merged.Nodes, p.Nodes...)
		merged.LeftOut += p.LeftOut
		if begin := roundToStep(p.From, step); p.length() > 0 {
			first, end = min(first, begin), max(end, begin+int64(p.length()))
		}
	}
	slices.Sort(merged.Nodes)
	if end < 0 {
		if len(parts) > 0 {
			merged.From = parts[0].From
		}
		return merged
	}
	const most = 3600 // a clock that is far off must not make it endless
	first = max(first, end-most)
	merged.From = time.Unix(first*int64(step), 0).UTC()
	type key struct{ rule, outcome string }
	at := make(map[key]int)
	for i := range parts {
		offset := roundToStep(parts[i].From, step) - first
		for _, l := range parts[i].Lines {
			k := key{l.Rule, l.Outcome}
			n, known := at[k]
			if !known {
				n = len(merged.Lines)
				at[k] = n
				merged.Lines = append(merged.Lines, Line{l.Rule, l.Outcome, make([]uint32, end-first)})
			}
			to := merged.Lines[n].Counts
			for i, count := range l.Counts {
				if j := offset + int64(i); j >= 0 {
					to[j] = uint32(min(uint64(to[j])+uint64(count), 1<<32-1))
				}
			}
		}
	}
	slices.SortFunc(merged.Lines, func(a, b Line) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Outcome, b.Outcome))
	})
	return merged
}

// length returns the number of steps.
func (s *Series) length() int {
	if len(s.Lines) == 0 {
		return 0
	}
	return len(s.Lines[0].Counts)
}
