package admin

import (
	"net/http"
	"net/url"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// Question selects counters: those of one rule, or of all, in which a request with these identities
// is counted.
type Question struct {
	// Rule, or "" for all rules that count by an identity in As.
	Rule string `json:"rule,omitempty"`
	// Method and URL of the request; without a URL, any request that the rules match.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	// As has the identities, by the names of identify and the built-in ones.
	As map[string]string `json:"as,omitempty"`
}

// Query returns the question as the query of GET /keys: rule, method, url, and as=name=value
// for each identity.
func (q *Question) Query() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"rule": q.Rule, "method": q.Method, "url": q.URL} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, value := range q.As {
		v.Add("as", name+"="+value)
	}
	return v
}

func fromQuery(v url.Values) (q Question, err error) {
	for name := range v {
		switch name {
		case "rule", "method", "url", "as":
		default:
			return q, problemf(http.StatusBadRequest, "There is no parameter %q; there are rule, method, url and as.", name)
		}
	}
	q = Question{Rule: v.Get("rule"), Method: v.Get("method"), URL: v.Get("url"), As: make(map[string]string)}
	for _, pair := range v["as"] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return q, problemf(http.StatusBadRequest, "as=%s does not say who; write, for example, as=user=42.", pair)
		}
		if was, twice := q.As[name]; twice && was != value {
			return q, problemf(http.StatusBadRequest, "There are as=%s=%s and as=%s=%s, and nobody is both; ask for one of them.", name, was, name, value)
		}
		q.As[name] = value
	}
	return q, nil
}

// check rejects questions that select nothing.
func (q *Question) check() error {
	switch {
	case q.Rule == "" && len(q.As) == 0:
		return problemf(http.StatusBadRequest, "This does not say whose counters; name somebody by as, or a rule.")
	case q.Method != "" && q.URL == "":
		return problemf(http.StatusBadRequest, "There is a method without a url.")
	}
	return nil
}

// request returns the request that the question describes.
func (q *Question) request() (*tidegate.Request, error) {
	described := describe.Request{Method: q.Method, URL: q.URL, As: q.As}
	r, err := described.Request()
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "%q is not a URL; write, for example, /posts or https://example.com/posts.", q.URL)
	}
	return r, nil
}
