package admin

import (
	"net/http"
	"net/url"
	"strings"

	"tidegate.dev/tidegate"
)

// Question says whose counters are meant: those of one rule or of all, that a
// request by somebody is counted in.
type Question struct {
	// Rule, or "" for all that count by what As names.
	Rule string `json:"rule,omitempty"`
	// Method and URL of the request; without a URL, whatever the rules match.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	// As is who is asking, by the names of identify and the built-in ones.
	As map[string]string `json:"as,omitempty"`
}

// Query is the question as the query of GET /keys: rule, method, url, and as=name=value
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
		q.As[name] = value
	}
	return q, nil
}

// check refuses what names nobody.
func (q *Question) check() error {
	switch {
	case q.Rule == "" && len(q.As) == 0:
		return problemf(http.StatusBadRequest, "This does not say whose counters; name somebody by as, or a rule.")
	case q.Method != "" && q.URL == "":
		return problemf(http.StatusBadRequest, "There is a method without a url.")
	}
	return nil
}

// asked is the request of a question.
type asked struct {
	as    map[string]string
	query url.Values
}

// Value implements [tidegate.Values].
func (a asked) Value(name string) (string, bool) {
	if name, ok := strings.CutPrefix(name, "query "); ok {
		value := a.query.Get(name)
		return value, value != ""
	}
	return "", false
}

// Identity implements rules.Identified.
func (a asked) Identity(name string) (value string, known bool) {
	value, known = a.as[name]
	return value, known
}

// request is the one that the question describes.
func (q *Question) request() (*tidegate.Request, error) {
	at := q.URL
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	u, err := url.Parse(at)
	if err != nil || u.Path == "" && u.Host == "" {
		return nil, problemf(http.StatusBadRequest, "%q is no url; write, for example, /posts or https://example.com/posts.", q.URL)
	}
	r := &tidegate.Request{Method: q.Method, Host: u.Host, Path: u.Path, Values: asked{q.As, u.Query()}}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if u.RawPath != "" {
		r.RawPath = u.EscapedPath()
	}
	return r, nil
}
