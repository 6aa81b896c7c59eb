package admin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
)

// SeriesTopic is the topic with which instances ask each other for series.
const SeriesTopic = "series"

// maxSeries bounds the unpacked answer of an instance.
const maxSeries = 8 << 20

// fleetSeries adds up the series of all instances.
func (s *server) fleetSeries(ctx context.Context, q SeriesQuery) (Series, error) {
	question, err := json.Marshal(q)
	if s.Board == nil || err != nil {
		return MergeSeries(q.Step, s.Series().about(q)), nil
	}
	answers, missing, err := s.askFleet(ctx, SeriesTopic, question)
	if err != nil {
		return Series{}, err
	}
	var parts []Series
	for node, packed := range answers {
		one, ok := unpackSeries(packed, q.Step)
		if !ok {
			missing = append(missing, board.Absent{Node: node, Why: "its answer cannot be read"})
			continue
		}
		one.Nodes = []string{node.Name}
		parts = append(parts, one)
	}
	alignSeries(parts, s.Series().about(q).end(time.Now()))
	merged := MergeSeries(q.Step, parts...)
	merged.Missing = absentTexts(missing)
	return merged, nil
}

// end returns when the last step ended, or now if there is none.
func (s Series) end(now time.Time) time.Time {
	if s.length() == 0 {
		return now
	}
	return s.From.Add(time.Duration(s.length()*s.Step) * time.Second)
}

// clocksDiffer is more than the time between the answers and a step can explain.
const clocksDiffer = 5 * time.Second

// alignSeries shifts the series of instances with differing clocks so that they end with the
// others: each was asked for its decisions until now.
func alignSeries(parts []Series, end time.Time) {
	for i := range parts {
		p := &parts[i]
		if off := p.end(end).Sub(end).Abs(); off > clocksDiffer+time.Duration(p.Step)*time.Second {
			p.From = end.Add(-time.Duration(p.length()*p.Step) * time.Second)
		}
	}
}

// AnswerSeries returns the answer of an instance to [SeriesTopic], about its own decisions. If
// there are more lines than fit, it leaves out those with the lowest counts. It answers nothing to a
// question that no instance asks: anybody with write access to the store could have written it.
func AnswerSeries(question []byte, own Series) []byte {
	var q SeriesQuery
	if json.Unmarshal(question, &q) != nil || !slices.Contains(seriesSteps, q.Step) {
		return nil
	}
	is := own.about(q)
	slices.SortStableFunc(is.Lines, func(a, b Line) int { return cmp.Compare(sumOf(b.Counts), sumOf(a.Counts)) })
	for {
		packed := packSeries(&is)
		if len(packed) <= board.MaxAnswerBody || len(is.Lines) == 0 {
			return packed
		}
		keep := len(is.Lines) * 3 / 4
		is.LeftOut += len(is.Lines) - keep
		is.Lines = is.Lines[:keep]
	}
}

func packSeries(is *Series) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if json.NewEncoder(z).Encode(is) != nil || z.Close() != nil { // neither can fail
		return nil
	}
	return b.Bytes()
}

// unpackSeries decodes an answer. It trusts nothing: anybody with write access to the store could
// have written it.
func unpackSeries(packed []byte, step int) (is Series, ok bool) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return is, false
	}
	if json.NewDecoder(io.LimitReader(z, maxSeries)).Decode(&is) != nil || is.Step != step {
		return is, false
	}
	for i := range is.Lines {
		l := &is.Lines[i]
		if len(l.Counts) != is.length() {
			return is, false
		}
		l.Rule, l.Outcome = shown(l.Rule, maxLayerName), shown(l.Outcome, maxWord)
	}
	return is, true
}
