package admin

import (
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/internal/lang/route"
	"tidegate.dev/tidegate/rules"
)

// samples are requests that meet a rule, one for each of its patterns: what a rule
// counts by may depend on which of them it was.
func samples(set *rules.Set, rule string, as map[string]string) []*tidegate.Request {
	var all []*tidegate.Request
	patterns := set.Patterns(rule)
	if len(patterns) == 0 {
		patterns = []string{"/"}
	}
	for _, text := range patterns {
		p, err := route.Split(text)
		if err != nil { // it has loaded: it is one
			continue
		}
		if r, err := sample(p, as).Request(); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// sample is a request that p matches.
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
