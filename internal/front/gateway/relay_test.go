package gateway

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

// A 103 goes to the client, and the answer after it still has our headers.
func TestEarlyHints(t *testing.T) {
	g := before(t, wireRules, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("X-Request-Id", "the upstream's")
		w.Header().Set("X-Other", "1")
		_, _ = io.WriteString(w, "done")
	})
	var hints []int
	r := newRequest(t, http.MethodGet, g.url+"/limited", nil)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if h.Get("Link") == "" {
				t.Errorf("%d without its Link: %v", code, h)
			}
			hints = append(hints, code)
			return nil
		},
	}))
	res, body := do(t, r)
	if len(hints) != 1 || hints[0] != http.StatusEarlyHints {
		t.Errorf("informational answers %v, want 103", hints)
	}
	if ids := res.Header["X-Request-Id"]; len(ids) != 1 || len(ids[0]) != 32 {
		t.Errorf("request ids %q", ids)
	}
	if body != "done" || res.Header.Get("X-Other") != "1" || !strings.Contains(res.Header.Get("RateLimit"), "limited") {
		t.Errorf("%q, %v", body, res.Header)
	}
}

func TestTrailers(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		n, err := io.Copy(w, r.Body)
		if err != nil || r.Trailer.Get("X-Sum") != "5" {
			t.Errorf("%d bytes, %v, trailer %v", n, err, r.Trailer)
		}
		w.Header().Set("X-Announced", "a")
		w.Header().Set(http.TrailerPrefix+"X-Late", "b")
	})
	r := newRequest(t, http.MethodPost, g.url, io.NopCloser(strings.NewReader("hello")))
	r.ContentLength = -1
	r.Trailer = http.Header{"X-Sum": {"5"}}
	res, body := do(t, r)
	want := http.Header{"X-Announced": {"a"}, "X-Late": {"b"}}
	if body != "hello" || fmt.Sprint(res.Trailer) != fmt.Sprint(want) {
		t.Errorf("%q, trailer %v, want %v", body, res.Trailer, want)
	}
}

// What the gateway says is said once; lists may be added to.
func TestHeadersAreSaidOnce(t *testing.T) {
	f := func(rules string, upstream, want http.Header) {
		t.Helper()
		g := before(t, rules, func(w http.ResponseWriter, _ *http.Request) { maps.Copy(w.Header(), upstream) })
		res, _ := get(t, g.url+"/limited")
		for name, values := range want {
			if got := res.Header[name]; fmt.Sprint(got) != fmt.Sprint(values) {
				t.Errorf("%s: %q, want %q", name, got, values)
			}
		}
	}
	f(wireRules, http.Header{"Ratelimit": {`"inner";r=3;t=1`}},
		http.Header{"Ratelimit": {`"limited";r=0;t=3600`, `"inner";r=3;t=1`}})
	f("version: 1\nheaders: { dialect: x }\n"+strings.TrimPrefix(wireRules, "\nversion: 1\n"), http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Other": {"a", "b"}},
		http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Other": {"a", "b"}})
	// Lists of another form are no extension: the whole would be invalid.
	const draft7 = "limit=100, remaining=3, reset=1"
	f(wireRules, http.Header{"Ratelimit": {draft7}, "Ratelimit-Policy": {"100;w=60"}},
		http.Header{"Ratelimit": {`"limited";r=0;t=3600`}, "Ratelimit-Policy": {`"limited";q=1;w=3600`}})
	f("version: 1\nheaders: { dialect: draft6 }\n"+strings.TrimPrefix(wireRules, "\nversion: 1\n"),
		http.Header{"Ratelimit": {draft7}, "Ratelimit-Policy": {`"inner";q=3;w=1`, "100;w=60"}},
		http.Header{"Ratelimit": {draft7}, "Ratelimit-Policy": {"1;w=3600", "100;w=60"}})
	theirs := http.Header{"X-Request-Id": {"theirs"}, "X-Other": {"a", "b"}}
	ours := http.Header{"X-Other": {"a", "b"}}
	for name, value := range map[string]string{"Limit": "1", "Remaining": "0", "Reset": "3600"} {
		theirs["Ratelimit-"+name], theirs["X-Ratelimit-"+name] = []string{"theirs"}, []string{"theirs"}
		ours["Ratelimit-"+name], ours["X-Ratelimit-"+name] = []string{value}, []string{value}
	}
	ours["Ratelimit-Policy"] = []string{`"limited";q=1;w=3600`}
	f("version: 1\nheaders: { dialect: [draft6, x, draft11] }\n"+strings.TrimPrefix(wireRules, "\nversion: 1\n"), theirs, ours)
}

// Bodies, statuses and header values of an upstream pass as they are.
func TestAnswersPassUnchanged(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("Content-Type", "x/y")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "not really gzip "+r.Header.Get("Accept-Encoding")+" "+r.Header.Get("User-Agent"))
	})
	r := newRequest(t, http.MethodGet, g.url, nil)
	r.Header.Set("Accept-Encoding", "br")
	r.Header.Set("User-Agent", "me")
	res, body := do(t, r)
	if res.StatusCode != http.StatusTeapot || len(res.Header["Set-Cookie"]) != 2 || res.Header.Get("Content-Encoding") != "gzip" || body != "not really gzip br me" {
		t.Errorf("%s %v %q", res.Status, res.Header, body)
	}
	r = newRequest(t, http.MethodHead, g.url, nil)
	if res, body := do(t, r); res.StatusCode != http.StatusTeapot || body != "" {
		t.Errorf("HEAD: %s %q", res.Status, body)
	}
}
