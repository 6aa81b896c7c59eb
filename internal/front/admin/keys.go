package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/rules"
)

// Keys answers a [Question].
type Keys struct {
	Counters []Counter `json:"counters"`
	// Unnamed are identities in the question that the rules do not have.
	Unnamed []Unnamed `json:"unnamed,omitempty"`
	// Measures are the bans and overrides that match the callers in question.
	Measures []rules.Measure `json:"measures,omitempty"`
	// Preview: nothing was changed.
	Preview bool `json:"preview,omitempty"`
}

// Unnamed is a name that the rules do not have, and a similar one that they have.
type Unnamed struct {
	Name string `json:"name"`
	Near string `json:"near,omitempty"`
}

// Counter is the state of a key under one limit of a rule.
type Counter struct {
	Rule  string `json:"rule"`
	Role  string `json:"role"`  // decides, marks, tries, blocks
	Limit string `json:"limit"` // 100/1m0s sub_windows
	Scope string `json:"scope"` // who is counted: user
	Key   string `json:"key"`   // 42
	// Subject is what Scope and Key say, part by part.
	Subject []rules.SubjectPart `json:"subject,omitempty"`
	// OK: one more event would be admitted.
	OK         bool    `json:"ok"`
	Remaining  int64   `json:"remaining"`
	Capacity   int64   `json:"capacity"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
	ResetAfter float64 `json:"reset_after_seconds,omitempty"` // until nothing is used
	// Local: the store does not answer, so these are the counts of this process, which admits its
	// share of the limit meanwhile.
	Local bool `json:"local,omitempty"`
	// Unknown says why the store cannot tell the state; the numbers are 0 then.
	Unknown string `json:"unknown,omitempty"`
	// WasUsed: something was counted here before the reset, or may have been.
	WasUsed bool `json:"was_used,omitempty"`
	// Refunded is how many events were given back.
	Refunded int64 `json:"refunded,omitempty"`

	check tidegate.Check
}

func (s *server) keys(r *http.Request) (any, error) {
	q, err := fromQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return s.peek(r.Context(), q)
}

// peek finds the counters and their states. It charges nothing.
func (s *server) peek(ctx context.Context, q Question) (Keys, error) {
	f, err := s.find(q)
	if err != nil {
		return Keys{}, err
	}
	if err := s.look(ctx, f.found); err != nil {
		return Keys{}, err
	}
	return Keys{Counters: f.found, Unnamed: s.unnamed(q), Measures: f.measures}, nil
}

// look fills in the states of counters. It fails if the store can tell none.
func (s *server) look(ctx context.Context, found []Counter) error {
	var failed error
	known := len(found) == 0
	for i := range found {
		c := &found[i]
		look := tidegate.Check{Key: c.check.Key, Limit: c.check.Limit, MaxWait: c.check.MaxWait} // a cost of 0 peeks
		d, err := s.peekOne(ctx, look)
		if err != nil {
			c.Unknown = err.Error()
			if failed == nil {
				failed = problemf(http.StatusServiceUnavailable, "The store cannot say where %s stands: %v.", c.Rule, err)
			}
			continue
		}
		known = true
		c.OK, c.Remaining, c.Capacity = d.OK, d.Remaining, c.check.Limit.Capacity()
		c.RetryAfter, c.ResetAfter = d.RetryAfter.Seconds(), d.ResetAfter.Seconds()
		c.Local = d.Receipt.Origin == tidegate.OriginLocal
	}
	if !known {
		return failed
	}
	return nil
}

// unnamed returns identities in a question that have no effect, because the rules do not have them.
func (s *server) unnamed(q Question) (all []Unnamed) {
	described := describe.Request{As: q.As}
	described.Unknown(s.Rules.Live().Set().Identities(), func(name, near string) {
		all = append(all, Unnamed{name, near})
	})
	return all
}

// used reports whether anything is counted in c, or may be.
func (c *Counter) used() bool {
	return c.Unknown != "" || !c.OK || c.ResetAfter > 0
}

// used reports whether anything is counted in a counter of k, or it was not looked at.
func (k *Keys) used(c *Counter) bool {
	i := slices.IndexFunc(k.Counters, func(o Counter) bool { return o.same(c) })
	return i < 0 || k.Counters[i].used()
}

// same reports whether a and b are the same counter.
func (c *Counter) same(o *Counter) bool {
	return c.check.Key == o.check.Key && c.check.Limit.Identity() == o.check.Limit.Identity()
}

// Change is the body of a write about counters.
type Change struct {
	Question
	// Events to refund, in each counter.
	Events int64 `json:"events,omitempty"`
	// Reason for the audit log.
	Reason string `json:"reason,omitempty"`
	// Preview asks which counters this is about, and changes nothing.
	Preview bool `json:"preview,omitempty"`
}

// operation returns the operation for the logs.
func (c *Change) operation(action string) operation {
	return operation{
		action: action, reason: c.Reason, preview: c.Preview,
		what: []any{"rule", c.Rule, "as", c.As, "request", strings.TrimSpace(c.Method + " " + c.URL)},
	}
}

func (s *server) resetKeys(r *http.Request) (any, operation, error) {
	var q Change
	if err := decode(r, &q); err != nil {
		return nil, operation{action: "reset"}, err
	}
	d := q.operation("reset")
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	if q.Events != 0 {
		return nil, d, problemf(http.StatusBadRequest, "A reset gives back everything; to give back %d events, use /keys/refund.", q.Events)
	}
	if q.Preview {
		keys, err := s.preview(r.Context(), q.Question)
		return keys, d, err
	}
	f, err := s.find(q.Question)
	if err != nil {
		return nil, d, err
	}
	found := f.found
	store, ok := s.Store.(tidegate.Resetter)
	if !ok {
		return nil, d, problemf(http.StatusNotImplemented, "The store cannot forget.")
	}
	was, err := s.peek(r.Context(), q.Question)
	knows := err == nil
	var checks []tidegate.Check
	for _, c := range found {
		checks = append(checks, c.check)
		for _, l := range c.check.Limit.Beside() { // counters that the Gate keeps beside it are reset, too
			checks = append(checks, tidegate.Check{Key: c.check.Key, Limit: l})
		}
	}
	d.what = append(d.what, "counters", len(found))
	if err := store.Reset(r.Context(), checks); err != nil {
		return nil, d, problemf(http.StatusServiceUnavailable, "The store could not forget: %v.", err)
	}
	now, err := s.peek(r.Context(), q.Question)
	for i := range now.Counters {
		now.Counters[i].WasUsed = !knows || was.used(&now.Counters[i])
	}
	return now, d, err
}

// preview returns the counters that a reset or a refund would affect.
func (s *server) preview(ctx context.Context, q Question) (Keys, error) {
	keys, err := s.peek(ctx, q)
	for i := range keys.Counters {
		keys.Counters[i].WasUsed = keys.Counters[i].used()
	}
	keys.Preview = true
	return keys, err
}

// maxReason is how long a reason may be.
const maxReason = 500

func checkReason(reason string) error {
	if len(reason) > maxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) {
		return problemf(http.StatusBadRequest, "The reason is longer than %d bytes, or not a line of text.", maxReason)
	}
	return nil
}

// find returns the counters that a question is about, each once.
func (s *server) find(q Question) (*finder, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if s.Rules == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules, so nothing is counted.")
	}
	live := s.Rules.Live()
	set := live.Set()
	if q.Rule != "" && !slices.Contains(set.Rules(), q.Rule) {
		return nil, noRule(set, q.Rule)
	}
	f := &finder{question: q, live: live, found: []Counter{}}
	return f, f.run()
}
