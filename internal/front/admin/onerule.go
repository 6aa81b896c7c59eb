package admin

import (
	"net/http"
	"slices"
	"unicode/utf8"

	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// OneRule is a rule in force: what it says, where that is written, and whether its numbers fit.
type OneRule struct {
	Name     string      `json:"name"`
	Place    string      `json:"place"`          // file:line:col
	Text     string      `json:"text,omitempty"` // as it is written
	Mode     string      `json:"mode"`           // enforce, enforce 25%, shadow or disabled
	Per      string      `json:"per,omitempty"`
	Patterns []string    `json:"patterns,omitempty"`
	Limits   []RuleLimit `json:"limits"` // of a caller about whom nothing special is known
	// Fit is what this instance has seen of refusals; nil if it does not look.
	Fit *fit.Report `json:"fit,omitempty"`
}

// RuleLimit is one of the limits of a rule.
type RuleLimit struct {
	Role  string `json:"role"` // decides, marks, tries, blocks
	Limit string `json:"limit"`
}

// oneRule shows a rule.
func (s *server) oneRule(r *http.Request) (any, error) {
	q := r.URL.Query()
	if err := known(q, "rule"); err != nil {
		return nil, err
	}
	name := q.Get("rule")
	if s.Rules == nil {
		return nil, problemf(http.StatusNotFound, "There are no rules, so nothing is limited.")
	}
	set := s.Rules.Live().Set()
	if !slices.Contains(set.Rules(), name) {
		if is := s.oneDomainRule(set, name); is != nil {
			return is, nil
		}
		return nil, noRule(set, name)
	}
	is := OneRule{Name: name, Patterns: set.Patterns(name), Limits: []RuleLimit{}}
	for _, request := range samples(set, name, nil) {
		for _, x := range set.Explain(request).Rules {
			if x.Name != name {
				continue
			}
			is.Place, is.Mode, is.Per = x.Place, x.Mode, x.Per
			for _, c := range x.Checks {
				if l := (RuleLimit{c.Role, c.Limit}); !slices.Contains(is.Limits, l) {
					is.Limits = append(is.Limits, l)
				}
			}
		}
	}
	is.Text = ruleText(s.filesInForce(), is.Place)
	if s.Fit != nil {
		report := s.Fit(name)
		is.Fit = &report
	}
	return is, nil
}

// oneDomainRule returns a rule of a domain of Envoy; nil if there is none of that name.
func (s *server) oneDomainRule(set *rules.Set, name string) *OneRule {
	found := domainRule(set, &source.Bundle{Files: s.filesInForce()}, name)
	if found == nil {
		return nil
	}
	is := &OneRule{Name: name, Place: found.Place, Text: found.Text, Mode: found.Mode, Limits: []RuleLimit{}}
	role := "decides"
	if is.Mode == "shadow" {
		role = "tries"
	}
	for _, l := range found.Limits {
		is.Limits = append(is.Limits, RuleLimit{role, l})
	}
	if s.Fit != nil {
		report := s.Fit(name)
		is.Fit = &report
	}
	return is
}

// filesInForce returns the files of the rules in force, of all layers; nil if they cannot be read. Of
// files with the same name, it returns that of the last layer.
func (s *server) filesInForce() map[string][]byte {
	if s.Apply == nil {
		return nil
	}
	layers, err := s.Apply.Layers()
	if err != nil {
		return nil
	}
	all := make(map[string][]byte)
	for i := range layers {
		for name, text := range layers[i].Bundle.Files {
			all[name] = text
		}
	}
	return all
}

// Editable returns a bundle as a layer that operators see and change. Its Files are as they are in the
// bundle, byte by byte, since they come back as part of a change; those that JSON cannot carry are
// Unshown.
func Editable(name string, b *source.Bundle) EditableLayer {
	l := EditableLayer{Name: name, Main: b.Main, Files: make(map[string]string, len(b.Files)), Bundle: b}
	for file, text := range b.Files {
		if utf8.Valid(text) {
			l.Files[file] = string(text)
			continue
		}
		if l.Unshown == nil {
			l.Unshown = make(map[string]string)
		}
		l.Unshown[file] = "it is not UTF-8 text"
	}
	return l
}
