package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/rules"
)

// Board is where measures are ordered: a [*board.Board].
type Board interface {
	Put(context.Context, board.Record) (board.Reach, error)
	End(ctx context.Context, id string) (board.Reach, error)
	All() []board.Record
	Ask(ctx context.Context, topic string, question []byte) (map[board.Node][]byte, []board.Absent, error)
}

// Measures are the ordered measures, oldest first.
type Measures struct {
	Measures []Ordered `json:"measures"`
}

// Ordered is a measure, and why it is not in force on the answering instance.
type Ordered struct {
	rules.Measure
	Problem string `json:"problem,omitempty"`
}

// Order is the body of POST /measures.
type Order struct {
	Kind    rules.MeasureKind `json:"kind"`
	As      map[string]string `json:"as"`
	Rule    string            `json:"rule,omitempty"`
	Limits  []string          `json:"limits,omitempty"`
	For     string            `json:"for,omitempty"`     // how long it lasts, as in 2h, 30m, 7d
	Until   time.Time         `json:"until,omitzero"`    // or until when; neither means until it is removed
	Reason  string            `json:"reason"`            // for operators
	Message string            `json:"message,omitempty"` // for those who are banned
	Preview bool              `json:"preview,omitempty"`
}

// Effect is what a measure does, or would.
type Effect struct {
	Preview bool          `json:"preview,omitempty"`
	Measure rules.Measure `json:"measure"`
	// Replaces is the previous measure about the same callers and rule.
	Replaces *rules.Measure `json:"replaces,omitempty"`
	// Counters are the affected counters under the rules, Then the same under the measure. Both are
	// empty for a network; Then is empty for a ban.
	Counters []Counter `json:"counters"`
	Then     []Counter `json:"then,omitempty"`
	// Reach says where it is in force; nil in a preview.
	Reach *board.Reach `json:"reach,omitempty"`
	// Holds says the same in words, or where it would not be in force.
	Holds string `json:"holds,omitempty"`
}

// measures lists the ordered measures, or those that a search finds.
func (s *server) measures(r *http.Request) (any, error) {
	if err := known(r.URL.Query(), "search"); err != nil {
		return nil, err
	}
	return Measures{s.listMeasures(r.URL.Query().Get("search"))}, nil
}

// listMeasures returns the ordered measures whose text contains search, in any case; all of them if
// search is "".
func (s *server) listMeasures(search string) []Ordered {
	search = strings.ToLower(search)
	all := []Ordered{}
	problems := make(map[string]string)
	if s.Rules != nil {
		_, wrong := s.Rules.Live().Measures()
		for _, p := range wrong {
			problems[p.ID] = p.Error()
		}
	}
	for _, m := range s.ordered() {
		if search == "" || strings.Contains(strings.ToLower(m.String()), search) {
			all = append(all, Ordered{m, problems[m.ID]})
		}
	}
	return all
}

// ordered returns the measures on the board, the oldest first.
func (s *server) ordered() (all []rules.Measure) {
	if s.Board == nil {
		return nil
	}
	for _, record := range s.Board.All() {
		var m rules.Measure
		if json.Unmarshal(record.Body, &m) == nil && m.ID == record.ID {
			all = append(all, m)
		}
	}
	return all
}

// order puts a measure in force, or previews it.
func (s *server) order(r *http.Request) (any, operation, error) {
	var o Order
	d := operation{action: "measure"}
	if err := decode(r, &o); err != nil {
		return nil, d, err
	}
	m, err := o.measure(time.Now(), operatorOf(r.Context()).Name)
	d = operation{action: "measure", reason: o.Reason, preview: o.Preview, what: []any{"as", o.As, "rule", o.Rule, "limits", o.Limits}}
	if o.Kind == rules.Ban || o.Kind == rules.Override {
		d.action = string(o.Kind)
	}
	if err != nil {
		return nil, d, err
	}
	d.what = append(d.what, "id", m.ID, "until", m.Until)
	if err := s.canOrder(&m); err != nil {
		return nil, d, err
	}
	effect := s.effect(r.Context(), &m)
	if o.Preview {
		effect.Preview, effect.Holds = true, s.wouldHold(r.Context())
		return effect, d, nil
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, d, err
	}
	reach, err := s.Board.Put(r.Context(), board.Record{ID: m.ID, Body: body, Expires: m.Until})
	if err != nil {
		return nil, d, orderProblem(err)
	}
	d.what = append(d.what, "holds", reach.String())
	effect.Reach, effect.Holds = &reach, reach.String()
	return effect, d, nil
}

func (s *server) canOrder(m *rules.Measure) error {
	if s.Board == nil || s.Rules == nil {
		return problemf(http.StatusNotFound, "There are no rules, so nobody can be banned or given other limits.")
	}
	if err := s.Rules.Live().Set().CheckMeasure(m); err != nil {
		return problemf(http.StatusBadRequest, "This cannot be ordered: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func orderProblem(err error) error {
	switch {
	case errors.Is(err, board.ErrUnknown):
		return problemf(http.StatusNotFound, "There is no such ban or override: %v.", err)
	case errors.Is(err, board.ErrFull):
		return problemf(http.StatusConflict, "No more can be ordered: %v.", err)
	case errors.Is(err, board.ErrClosed):
		return problemf(http.StatusServiceUnavailable, "This process is about to end: %v.", err)
	}
	return problemf(http.StatusBadRequest, "This cannot be ordered: %v.", err)
}

// measure returns the measure that o orders; by is the name of the operator.
func (o *Order) measure(now time.Time, by string) (rules.Measure, error) {
	m := rules.Measure{Kind: o.Kind, As: oneSpelling(o.As), Rule: o.Rule, Limits: o.Limits, Reason: o.Reason, Message: o.Message, By: by, At: now.UTC().Truncate(time.Millisecond)}
	if err := checkReason(o.Reason); err != nil {
		return m, err
	}
	if strings.TrimSpace(o.Reason) == "" {
		return m, problemf(http.StatusBadRequest, "There is no reason; say in reason why, for whoever looks at this later.")
	}
	until, err := o.ends(now)
	if err != nil {
		return m, err
	}
	m.Until = until
	m.ID = measureID(&m)
	return m, nil
}

// longest is how long a measure may last; to last longer, it must have no end.
const longest = 10 * 365 * 24 * time.Hour

// ends returns when the measure ends; the zero time means never.
func (o *Order) ends(now time.Time) (time.Time, error) {
	until := o.Until
	switch {
	case o.For != "" && !until.IsZero():
		return until, problemf(http.StatusBadRequest, "There are for and until: say one of them.")
	case o.For != "":
		last, err := parseFor(o.For)
		if err != nil {
			return until, err
		}
		until = now.Add(last)
	case until.IsZero():
		return until, nil
	}
	if !until.After(now) || until.Sub(now) > longest {
		return until, problemf(http.StatusBadRequest, "It would end at %s, which is past or more than ten years away; it is %s.", until.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return until.UTC().Truncate(time.Millisecond), nil
}

// parseFor reads 2h, 1h30m, 7d.
func parseFor(text string) (time.Duration, error) {
	unit, count := time.Duration(1), text
	if days, ok := strings.CutSuffix(text, "d"); ok && strings.Trim(days, "0123456789") == "" {
		unit, count = 24, days+"h"
	}
	d, err := time.ParseDuration(count)
	if err != nil || d <= 0 || d > longest/unit {
		return 0, problemf(http.StatusBadRequest, "for is how long it lasts, as in 30s, 15m, 2h or 7d, and not %q.", text)
	}
	return d * unit, nil
}

// MeasureQuestion names a measure by its ID, or by what it is about.
type MeasureQuestion struct {
	ID      string            `json:"id,omitempty"`
	Kind    rules.MeasureKind `json:"kind,omitempty"`
	As      map[string]string `json:"as,omitempty"`
	Rule    string            `json:"rule,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Preview bool              `json:"preview,omitempty"`
}

// endMeasure removes a measure before its end.
func (s *server) endMeasure(r *http.Request) (any, operation, error) {
	var q MeasureQuestion
	d := operation{action: "end"}
	if err := decode(r, &q); err != nil {
		return nil, d, err
	}
	d = operation{action: "end", reason: q.Reason, preview: q.Preview, what: []any{"id", q.ID, "kind", string(q.Kind), "as", q.As, "rule", q.Rule}}
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	m, err := s.findMeasure(&q)
	if err != nil {
		return nil, d, err
	}
	d.what = []any{"id", m.ID, "kind", string(m.Kind), "as", m.As, "rule", m.Rule, "limits", m.Limits, "by", m.By}
	effect := Effect{Measure: *m, Counters: []Counter{}, Preview: q.Preview}
	if q.Preview {
		effect.Holds = s.wouldHold(r.Context())
		return effect, d, nil
	}
	reach, err := s.Board.End(r.Context(), m.ID)
	if err != nil {
		return nil, d, orderProblem(err)
	}
	effect.Reach, effect.Holds = &reach, reach.String()
	return effect, d, nil
}

// findMeasure returns the measure in question; an error if there is none, or several.
func (s *server) findMeasure(q *MeasureQuestion) (*rules.Measure, error) {
	if q.ID == "" && len(q.As) == 0 {
		return nil, problemf(http.StatusBadRequest, "This does not say which measure; name its id, or whom it is about by as.")
	}
	as := oneSpelling(q.As)
	var found []rules.Measure
	for _, m := range s.ordered() {
		if q.ID != "" && q.ID != m.ID || q.Kind != "" && q.Kind != m.Kind || q.Rule != "" && q.Rule != m.Rule || len(as) > 0 && !s.sameWho(as, m.As) {
			continue
		}
		found = append(found, m)
	}
	switch len(found) {
	case 0:
		return nil, problemf(http.StatusNotFound, "There is no such ban or override in force; tidegate measures, or GET /measures, lists those there are.")
	case 1:
		return &found[0], nil
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	slices.Sort(ids)
	return nil, problemf(http.StatusConflict, "Several measures are about them: %s; name one by its id, or a rule.", listed(ids))
}
