package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// Sample is a request that a pattern of a rule matches.
type Sample struct{ Method, Host, Path string }

// Samples returns a request for every pattern of the rules that limit, each once. Rules that are
// disabled or deny are left out, and those that count by the path or a part of it, since real
// requests have other values there.
func (s *Set) Samples() []Sample {
	var all []Sample
	seen := make(map[Sample]bool)
	for i := len(s.entries) - len(s.rules); i < len(s.entries); i++ {
		r, patterns := s.entries[i].rule, s.entries[i].patterns
		byPath := slices.ContainsFunc(r.subject.parts, func(p part) bool { return p.id.ofPath() })
		if r.mode == rulefile.Disabled || r.deny || byPath {
			continue
		}
		if len(patterns) == 0 {
			patterns = []string{"/"}
		}
		for _, text := range patterns {
			p, err := route.Split(text)
			if err != nil { // cannot happen: the pattern has been loaded
				continue
			}
			if made := sample(p); !seen[made] {
				seen[made] = true
				all = append(all, made)
			}
		}
	}
	return all
}

// sample puts the name of each wildcard in its place.
func sample(p route.Pattern) Sample {
	segments := strings.Split(p.Path, "/")
	for i, s := range segments {
		if s == "{$}" {
			segments[i] = ""
		} else if strings.HasPrefix(s, "{") {
			segments[i] = strings.Trim(s, "{.}")
		}
	}
	return Sample{p.Method, p.Host, strings.Join(segments, "/")}
}
