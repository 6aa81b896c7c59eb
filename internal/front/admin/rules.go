package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// ruleSet is the state of the rules in force.
type ruleSet struct {
	Rules    []string  `json:"rules"`
	Files    []string  `json:"files"`
	Hash     string    `json:"hash,omitempty"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Reloads  int       `json:"reloads"`
	Failed   int       `json:"failed"`
	Warnings diag.List `json:"warnings,omitempty"`
	// Current: the rules in force are those in the files. If not, Error says why, and Since since
	// when.
	Current  bool      `json:"current"`
	Error    string    `json:"error,omitempty"`
	Problems diag.List `json:"problems,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// APIKeys and JWKS are the state of the keys that identify callers.
	APIKeys *source.APIKeysStatus `json:"api_keys,omitempty"`
	JWKS    *rules.JWKSStatus     `json:"jwks,omitempty"`
	// XDS is the state of the control plane that sends rules.
	XDS any `json:"xds,omitempty"`
}

// validation is the result of checking rules.
type validation struct {
	Valid    bool      `json:"valid"`
	Problems diag.List `json:"problems"` // errors, and warnings
	Rules    []string  `json:"rules,omitempty"`
	// Changes are what would happen to counters if the rules came into force.
	Changes []string `json:"changes,omitempty"`
}

// validate answers what is wrong with rules, and what they would change. It puts nothing in force.
func (s *server) validate(r *http.Request) (any, error) {
	var q struct {
		Name   string `json:"name"`
		Source string `json:"source"`
	}
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if s.Compile == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules here to validate others for.")
	}
	if strings.ContainsAny(q.Name, "/\\\x00") {
		return nil, problemf(http.StatusBadRequest, "The name is that of a file alone, without a folder, and is %q.", q.Name)
	}
	set, err := s.Compile(q.Name, []byte(q.Source))
	if err != nil {
		load, ok := errors.AsType[*rules.LoadError](err)
		if !ok {
			return nil, problemf(http.StatusInternalServerError, "The rules cannot be validated: %v.", err)
		}
		return validation{Problems: append(diag.List{}, load.Problems...)}, nil
	}
	v := validation{Valid: true, Problems: append(diag.List{}, set.Warnings()...), Rules: set.Rules()}
	if s.Rules != nil {
		for _, c := range rules.Compare(s.Rules.Live().Set(), set) {
			v.Changes = append(v.Changes, c.String())
		}
	}
	return v, nil
}

// explained is a request to be explained.
type explained struct {
	Question
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	IP      string            `json:"ip,omitempty"`
	Cost    int64             `json:"cost,omitempty"`
}

// explain answers how the rules in force treat a request. It charges nothing.
func (s *server) explain(r *http.Request) (any, error) {
	var q explained
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	switch {
	case s.Rules == nil:
		return nil, problemf(http.StatusNotFound, "There are no rules, so nothing is limited.")
	case q.URL == "":
		return nil, problemf(http.StatusBadRequest, "There is no request to explain; send method and url.")
	}
	d := describe.Request{Method: q.Method, URL: q.URL, Header: make(http.Header), Body: q.Body, IP: cmp.Or(q.IP, describe.Someone), Cost: q.Cost, As: q.As}
	d.AddHeaders(q.Headers)
	request, err := d.Request()
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "This is not a request: %v.", err)
	}
	e := s.Rules.Live().Explain(request)
	if q.Rule != "" {
		e.Rules = slices.DeleteFunc(e.Rules, func(x rules.ExplainedRule) bool { return x.Name != q.Rule })
	}
	return e, nil
}

// reload reads the rule files again, now.
func (s *server) reload(r *http.Request) (any, operation, error) {
	var q struct {
		Reason string `json:"reason"`
	}
	d := operation{action: "reload"}
	if err := decode(r, &q); err != nil {
		return nil, d, err
	}
	d.reason = q.Reason
	if err := checkReason(q.Reason); err != nil {
		return nil, d, err
	}
	if s.Reload == nil || s.Rules == nil {
		return nil, d, problemf(http.StatusNotFound, "There are no rule files to read.")
	}
	was := s.Rules.Status()
	s.Reload()
	s.awaitReload(r.Context(), &was)
	is, err := s.rules(r)
	return is, d, err
}

// awaitReload returns when a reload has changed the status, or after a second.
func (s *server) awaitReload(ctx context.Context, was *source.Status) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		if is := s.Rules.Status(); is.Reloads != was.Reloads || is.Failed != was.Failed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) rules(*http.Request) (any, error) {
	is := ruleSet{Rules: []string{}, Files: []string{}, Current: true}
	if s.Plane != nil {
		is.XDS = s.Plane()
	}
	if s.Rules == nil {
		return is, nil
	}
	st, set := s.Rules.Status(), s.Rules.Live().Set()
	is.Rules = append(is.Rules, set.Rules()...)
	is.Files = append(is.Files, st.Files...)
	is.Warnings = set.Warnings()
	is.Hash, is.LoadedAt, is.Reloads, is.Failed = st.Hash, st.LoadedAt, st.Reloads, st.Failed
	is.Current, is.Error, is.Problems, is.Since = st.LastError == "", st.LastError, st.Problems, st.Since
	is.APIKeys, is.JWKS = st.APIKeys, st.JWKS
	return is, nil
}
