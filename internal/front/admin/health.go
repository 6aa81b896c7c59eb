package admin

import (
	"net/http"
	"slices"
	"time"
)

// Health is the state of the store. Requests are answered whatever it is.
type Health struct {
	Status string    `json:"status"`         // ok, full, partial, degraded, recovering
	Since  time.Time `json:"since,omitzero"` // when it became ok, or ceased to be
	Why    string    `json:"why,omitempty"`  // why it is not ok
	// Servers are masters of a cluster, or shards, that are not ok while others are.
	Servers []Server `json:"servers,omitempty"`
	// Unasked are rules for which the store fails although it works otherwise.
	Unasked []Unasked `json:"cannot_ask,omitempty"`
	// Warnings are about a store that may lose counters, and about keys that could not be read or
	// fetched again.
	Warnings []string `json:"warnings,omitempty"`
	// ClockOffset is how far the clock of this process is ahead of that of the store, in
	// seconds; nil means that they have not been compared.
	ClockOffset *float64 `json:"clock_offset_seconds,omitempty"`
	// Instances is how many share the counters; 0 means that they are of this process alone.
	Instances int `json:"instances,omitempty"`
}

// Server is a master of a cluster, or a shard. While it is not ok, on_store_failure decides for its
// keys.
type Server struct {
	Name   string    `json:"server"`
	Status string    `json:"status"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
}

// Unasked is a rule for which the store fails. Its on_store_failure decides.
type Unasked struct {
	Rule  string    `json:"rule"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// alive answers while the process lives, whatever the state of the store is: a restart would not
// help.
func (s *server) alive(*http.Request) (any, error) {
	is := struct {
		Alive bool `json:"alive"`
		Health
	}{true, Health{Status: "ok"}}
	if s.Health != nil {
		is.Health = s.Health()
	}
	is.Warnings = slices.Concat(is.Warnings, s.sourceWarnings(), s.trustWarnings())
	if s.Warnings != nil {
		is.Warnings = append(is.Warnings, s.Warnings()...)
	}
	return is, nil
}

// sourceWarnings returns warnings about the sources of rules. They do not name the sources, since anybody
// may ask.
func (s *server) sourceWarnings() (all []string) {
	if s.Rules == nil {
		return nil
	}
	st := s.Rules.Status()
	if st.None {
		return []string{"there are no rules yet, so nothing is limited; see /rules/status"}
	}
	away, copied := false, false
	for _, l := range st.Layers {
		away, copied = away || l.Error != "", copied || l.FromCopy
	}
	switch {
	case copied:
		all = append(all, "a source of rules has not answered yet, its last good copy is in force; see /rules/status")
	case away:
		all = append(all, "a source of rules does not answer, what it had is in force; see /rules/status")
	}
	return all
}

// trustWarnings returns warnings about keys that could not be read or fetched; the previous ones stay in
// use.
func (s *server) trustWarnings() (all []string) {
	if s.Rules == nil {
		return nil
	}
	st := s.Rules.Status()
	if k := st.APIKeys; k != nil && k.LastError != "" {
		all = append(all, "the API keys in their file cannot be used, those loaded before are in force; see /rules")
	}
	if j := st.JWKS; j != nil && j.LastError != "" {
		if j.Keys == 0 {
			all = append(all, "there are no keys to verify tokens with, so that tokens count as missing; see /rules")
		} else {
			all = append(all, "the keys that verify tokens cannot be fetched, those fetched before are in use; see /rules")
		}
	}
	return all
}

// readiness says whether requests should be sent to this instance.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons,omitempty"`  // why not
	Warnings []string `json:"warnings,omitempty"` // it is ready, but operators should look
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, r, "GET, HEAD")
		return
	}
	is := readiness{Ready: true}
	for _, check := range s.Ready {
		if err := check(); err != nil {
			is.Ready, is.Reasons = false, append(is.Reasons, err.Error())
		}
	}
	// The previous rules stay in force: no reason to go elsewhere.
	if s.Rules != nil && s.Rules.Status().LastError != "" && !s.Rules.Status().None {
		is.Warnings = append(is.Warnings, "the rules in the files do not load, those loaded before are in force; see /rules")
	}
	is.Warnings = slices.Concat(is.Warnings, s.sourceWarnings(), s.trustWarnings())
	if s.Warnings != nil {
		is.Warnings = append(is.Warnings, s.Warnings()...)
	}
	// Nor is a store that does not answer.
	if s.Health != nil {
		h := s.Health()
		is.Warnings = append(is.Warnings, h.Warnings...)
		if len(h.Servers) > 0 && h.Status == "partial" {
			is.Warnings = append(is.Warnings, "some servers of the store do not answer; see /healthz")
		} else if len(h.Unasked) > 0 && h.Status == "partial" {
			is.Warnings = append(is.Warnings, "the store cannot be asked about every rule; see /healthz")
		} else if h.Status != "ok" {
			is.Warnings = append(is.Warnings, "the store is "+h.Status+"; see /healthz")
		}
	}
	status := http.StatusOK
	if !is.Ready {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, "application/json", is)
}
