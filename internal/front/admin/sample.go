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
	patterns := set.Patterns(rule)
	if len(patterns) == 0 {
		patterns = []string{"/"}
	}
	for _, text := range patterns {
		p, err := route.Split(text)
		if err != nil { // cannot be: the rules have been loaded
			continue
		}
		if r, err := sample(p, as).Request(); err == nil {
			all = append(all, r)
		}
	}
	return all
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
