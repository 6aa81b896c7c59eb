package admin

import (
	"net/http"
	"slices"
	"time"
)

// Health is how the store is doing. Whatever it is, requests are answered.
type Health struct {
	Status string    `json:"status"`         // ok, full, partial, degraded, recovering
	Since  time.Time `json:"since,omitzero"` // when it became ok, or ceased to be
	Why    string    `json:"why,omitempty"`  // it is not ok
	// Servers are masters of a cluster, or shards, that are not ok while others are.
	Servers []Server `json:"servers,omitempty"`
	// Unasked are rules that the store, while it works, cannot be asked about.
	Unasked []Unasked `json:"cannot_ask,omitempty"`
	// Warnings are of a store that does not keep counters as it should, and of keys that
	// could not be read or fetched again.
	Warnings []string `json:"warnings,omitempty"`
	// ClockOffset is how far the clock of this process is ahead of that of the store, in
	// seconds; nil means that they have not been compared.
	ClockOffset *float64 `json:"clock_offset_seconds,omitempty"`
	// Instances that share the counters; 0 means they are of this process.
	Instances int `json:"instances,omitempty"`
}

// Server is a master of a cluster, or a shard. on_store_failure decides about what is counted there.
type Server struct {
	Name   string    `json:"server"`
	Status string    `json:"status"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
}

// Unasked is one of them. Its on_store_failure decides.
type Unasked struct {
	Rule  string    `json:"rule"`
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
}

// alive answers as long as the process does, and says how its store is: no reason to
// restart it, which would not help.
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

// sourceWarnings are about places that rules come from. They do not say which: anybody may ask.
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

// trustWarnings are about keys that could not be read or fetched: those before are in use.
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

// readiness is whether requests should be sent here.
type readiness struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons,omitempty"`  // why not
	Warnings []string `json:"warnings,omitempty"` // it is, and somebody should look
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
	// The rules loaded before are in force: no reason to go elsewhere.
	if s.Rules != nil && s.Rules.Status().LastError != "" && !s.Rules.Status().None {
		is.Warnings = append(is.Warnings, "the rules in the files do not load, those loaded before are in force; see /rules")
	}
	is.Warnings = slices.Concat(is.Warnings, s.sourceWarnings(), s.trustWarnings())
	if s.Warnings != nil {
		is.Warnings = append(is.Warnings, s.Warnings()...)
	}
	// So are requests while the store does not answer.
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
