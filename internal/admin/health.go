package admin

import "net/http"

// alive answers as long as the process does.
func (s *server) alive(*http.Request) (any, error) {
	return struct {
		Alive bool `json:"alive"`
	}{true}, nil
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
	if s.Rules != nil && s.Rules.Status().LastError != "" {
		is.Warnings = append(is.Warnings, "the rules in the files do not load, those loaded before are in force; see /rules")
	}
	status := http.StatusOK
	if !is.Ready {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, "application/json", is)
}
