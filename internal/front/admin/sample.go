package admin

import (
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/rules"
)

// samples returns made-up requests by the caller with the identities as: one for each
// pattern of the rule, since the key that the rule counts by may depend on the pattern.
func samples(set *rules.Set, rule string, as map[string]string) []*tidegate.Request {
	var all []*tidegate.Request
	for _, pattern := range patternsOf(set, rule) {
		if r := sampleOf(pattern, as); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// patternsOf returns the patterns of the rule; a rule without any matches every path.
func patternsOf(set *rules.Set, rule string) []string {
	if patterns := set.Patterns(rule); len(patterns) > 0 {
		return patterns
	}
	return []string{"/"}
}

// sampleOf returns a request that a pattern matches; nil if none can be made.
func sampleOf(pattern string, as map[string]string) *tidegate.Request {
	p, err := route.Split(pattern)
	if err != nil { // cannot happen: the rules have been loaded
		return nil
	}
	r, err := sample(p, as).Request()
	if err != nil {
		return nil
	}
	return r
}

// sample returns a request that p matches, with each wildcard replaced by its name.
func sample(p route.Pattern, as map[string]string) *describe.Request {
	segments := strings.Split(p.Path, "/")
	for i, s := range segments {
		if s == "{$}" {
			segments[i] = ""
		} else if strings.HasPrefix(s, "{") {
			segments[i] = strings.Trim(s, "{.}")
		}
	}
	return &describe.Request{Method: p.Method, URL: p.Host + strings.Join(segments, "/"), As: as}
}
