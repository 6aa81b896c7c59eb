package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
)

// Keys answers a [Question].
type Keys struct {
	Counters []Counter `json:"counters"`
	// Unnamed are identities of the question that the rules do not have.
	Unnamed []Unnamed `json:"unnamed,omitempty"`
}

// Unnamed is a name that the rules do not have, and the one that it resembles.
type Unnamed struct {
	Name string `json:"name"`
	Near string `json:"near,omitempty"`
}

// Counter is where a key stands under one limit of a rule.
type Counter struct {
	Rule  string `json:"rule"`
	Role  string `json:"role"`  // decides, marks, tries, blocks
	Limit string `json:"limit"` // 100/1m0s sub_windows
	Scope string `json:"scope"` // who is counted: user
	Key   string `json:"key"`   // 42
	// Subject is what Scope and Key say, part by part.
	Subject []rules.SubjectPart `json:"subject,omitempty"`
	// OK: one more would pass.
	OK         bool    `json:"ok"`
	Remaining  int64   `json:"remaining"`
	Capacity   int64   `json:"capacity"`
	RetryAfter float64 `json:"retry_after_seconds,omitempty"`
	ResetAfter float64 `json:"reset_after_seconds,omitempty"` // when it is as good as new
	// Local: the store does not answer. These are counts of this process, which admits its
	// share of the limit meanwhile.
	Local bool `json:"local,omitempty"`
	// Unknown is why the store cannot say where the key stands; the numbers are 0 then.
	Unknown string `json:"unknown,omitempty"`
	// WasUsed: something was counted here before a reset, or that is not known.
	WasUsed bool `json:"was_used,omitempty"`

	check tidegate.Check
}

func (s *server) keys(r *http.Request) (any, error) {
	q, err := fromQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return s.peek(r.Context(), q)
}

// peek finds the counters and where they stand. It charges nothing.
func (s *server) peek(ctx context.Context, q Question) (Keys, error) {
	found, err := s.find(q)
	if err != nil {
		return Keys{}, err
	}
	var failed error
	known := len(found) == 0
	for i := range found {
		c := &found[i]
		look := tidegate.Check{Key: c.check.Key, Limit: c.check.Limit} // a cost of 0 peeks
		d, err := s.Store.Take(ctx, []tidegate.Check{look}, 1)
		if err == nil {
			err = d.Err // somebody else has answered for the store
		}
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
		return Keys{}, failed
	}
	return Keys{found, s.unnamed(q)}, nil
}

// unnamed are the identities of a question that change nothing, because the rules do not
// have them.
func (s *server) unnamed(q Question) (all []Unnamed) {
	described := describe.Request{As: q.As}
	described.Unknown(s.Rules.Live().Set().Identities(), func(name, near string) {
		all = append(all, Unnamed{name, near})
	})
	return all
}

// used reports whether anything is counted in c, as far as that is known.
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

func (s *server) resetKeys(r *http.Request) (any, []any, error) {
	var q Question
	if err := decode(r, &q); err != nil {
		return nil, nil, err
	}
	what := []any{"rule", q.Rule, "as", q.As, "request", strings.TrimSpace(q.Method + " " + q.URL)}
	found, err := s.find(q)
	if err != nil {
		return nil, what, err
	}
	store, ok := s.Store.(tidegate.Resetter)
	if !ok {
		return nil, what, problemf(http.StatusNotImplemented, "The store cannot forget.")
	}
	was, err := s.peek(r.Context(), q)
	knows := err == nil
	var checks []tidegate.Check
	for _, c := range found {
		checks = append(checks, c.check)
		if settled := c.check.Limit.Settled(); settled != nil { // who is let in again starts afresh
			checks = append(checks, tidegate.Check{Key: c.check.Key, Limit: settled})
		}
	}
	what = append(what, "counters", len(found))
	if err := store.Reset(r.Context(), checks); err != nil {
		return nil, what, problemf(http.StatusServiceUnavailable, "The store could not forget: %v.", err)
	}
	now, err := s.peek(r.Context(), q)
	for i := range now.Counters {
		now.Counters[i].WasUsed = !knows || was.used(&now.Counters[i])
	}
	return now, what, err
}

// find returns the counters that a question is about, each once.
func (s *server) find(q Question) ([]Counter, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	if s.Rules == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules, so nothing is counted.")
	}
	live := s.Rules.Live()
	set := live.Set()
	if q.Rule != "" && !slices.Contains(set.Rules(), q.Rule) {
		hint := ""
		if near := diag.Nearest(q.Rule, set.Rules()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return nil, problemf(http.StatusNotFound, "There is no rule %s%s", q.Rule, hint)
	}
	f := finder{question: q, live: live, found: []Counter{}}
	err := f.run()
	return f.found, err
}
