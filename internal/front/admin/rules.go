package admin

import (
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// ruleSet is what there is to know about the rules in force.
type ruleSet struct {
	Rules    []string  `json:"rules"`
	Files    []string  `json:"files"`
	Hash     string    `json:"hash,omitempty"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	Reloads  int       `json:"reloads"`
	Failed   int       `json:"failed"`
	Warnings diag.List `json:"warnings,omitempty"`
	// Current: they are those in the files. If not, this is why, and since when.
	Current  bool      `json:"current"`
	Error    string    `json:"error,omitempty"`
	Problems diag.List `json:"problems,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// APIKeys and JWKS are how the keys are by which callers say who they are.
	APIKeys *source.APIKeysStatus `json:"api_keys,omitempty"`
	JWKS    *rules.JWKSStatus     `json:"jwks,omitempty"`
}

func (s *server) rules(*http.Request) (any, error) {
	is := ruleSet{Rules: []string{}, Files: []string{}, Current: true}
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
