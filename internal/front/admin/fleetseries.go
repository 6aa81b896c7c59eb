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

// SeriesTopic is the question about series that instances put to each other.
const SeriesTopic = "series"

// maxSeries bounds what the answer of an instance is when it is unpacked.
const maxSeries = 8 << 20

// fleetSeries adds up the series of all instances.
func (s *server) fleetSeries(ctx context.Context, q SeriesQuery) Series {
	question, err := json.Marshal(q)
	if s.Board == nil || err != nil {
		return MergeSeries(q.Step, s.Series().about(q))
	}
	answers, missing, _ := s.Board.Ask(ctx, SeriesTopic, question) // who is missing says it as well
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
	return merged
}

// end is when the last step ended, or now if there are none.
func (s Series) end(now time.Time) time.Time {
	if s.length() == 0 {
		return now
	}
	return s.From.Add(time.Duration(s.length()*s.Step) * time.Second)
}

// clocksDiffer is more than answers that were made one after the other explain, beside a step.
const clocksDiffer = 5 * time.Second

// alignSeries has the series of instances with another clock end when the others do: each was asked
// what it has decided until now.
func alignSeries(parts []Series, end time.Time) {
	for i := range parts {
		p := &parts[i]
		if off := p.end(end).Sub(end).Abs(); off > clocksDiffer+time.Duration(p.Step)*time.Second {
			p.From = end.Add(-time.Duration(p.length()*p.Step) * time.Second)
		}
	}
}

// AnswerSeries returns what an instance answers to [SeriesTopic], about what was decided there. If
// there are more lines than fit, those that count the least are left out.
func AnswerSeries(question []byte, own Series) []byte {
	var q SeriesQuery
	if json.Unmarshal(question, &q) != nil {
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

// unpackSeries reads an answer; anybody who may write to the store may have written it.
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
