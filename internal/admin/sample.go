package admin

import (
	"net/http"
	"net/url"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/route"
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
		if p, err := route.Split(text); err == nil { // it has loaded: it is one
			all = append(all, sample(p, as))
		}
	}
	return all
}

// sample is a request that p matches.
func sample(p route.Pattern, as map[string]string) *tidegate.Request {
	r := &tidegate.Request{Method: p.Method, Host: p.Host, Values: asked{as: as}}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	segments := strings.Split(p.Path, "/")
	for i, s := range segments {
		if s == "{$}" {
			segments[i] = ""
		} else if strings.HasPrefix(s, "{") {
			segments[i] = strings.Trim(s, "{.}")
		}
	}
	r.Path = strings.Join(segments, "/")
	if path, err := url.PathUnescape(r.Path); err == nil && path != r.Path {
		r.Path, r.RawPath = path, r.Path
	}
	return r
}
