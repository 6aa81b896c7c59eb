package checkapi

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzBody: whatever is sent, the answer is as described, and what encoding/json does not
// take is not understood here.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"method":"POST","host":"h","path":"/a?b","ip":"192.0.2.1","headers":{"a":"b","c":["d"]},"body":{"x":[1,{"y":null}]},"cost":3,"as":{"user":42,"t":"x"}}`,
		`{"checks":[{},{"path":"/a"}]}`, `{"path":"\u00e4\n\ud83d\ude00"}`, `{"ticket":"x","cost":1,"status":200}`, `{"as":{"a":1.50,"b":-0,"c":1e3}}`,
		` { "path" : "/" } `, `{"path":"/",}`, `{"body":"\"","cost":1}`, `[`, `{"a`, `{"body":[[[]]]}`, `{"body":tru}`, `{"body":[ `, `{"body":[1 `, "{\"path\":\"\xff\"}",
	} {
		f.Add(body, uint8(0))
		f.Add(body, uint8(4))
	}
	targets := []string{"/v1/check", "/v1/peek", "/v1/reserve", "/v1/acquire", "/v1/settle", "/v1/report", "/v1/renew", "/v1/release", "/v1/usage"}
	s := newServer(f, usageRules, nil)
	f.Fuzz(func(t *testing.T, body string, at uint8) {
		target := targets[int(at)%len(targets)]
		w := ask(t, s, "POST", target, body)
		if w.Code == 200 && !json.Valid([]byte(body)) {
			t.Errorf("%s %q is not JSON, and was answered", target, body)
		}
		if w.Code >= 500 {
			t.Errorf("%s %q: %d %s", target, body, w.Code, w.Body)
		}
		if w.Code == 200 && bytes.ContainsAny(w.Body.Bytes(), "\n\r") {
			t.Errorf("%q", w.Body)
		}
	})
}

// FuzzForwardAuth: whatever a proxy says, the answer is as described, and a path that can
// be read as /private is never allowed.
func FuzzForwardAuth(f *testing.F) {
	for _, seed := range [][5]string{
		{"GET", "/api/x", "", "192.0.2.1", "site.example"},
		{"POST", "/private", "/private", "", ""},
		{"GET", "/a/../private", "", "x", "a,b"},
		{"get", "//private", "http://h/private", "1.2.3.4, ::1", "h"},
		{"GET", "/%70rivate;x", "", "", ":"},
		{"GET", "*", "", "", ""},
		{"GET", "/private#", "", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], "deny=403")
	}
	s := newServer(f, usageRules, nil)
	f.Fuzz(func(t *testing.T, method, uri, url, from, host, query string) {
		r := httptest.NewRequest("GET", forwardAuth, nil)
		r.RemoteAddr = "127.0.0.1:1"
		if query != "" {
			r.RequestURI += "?" + query
		}
		for name, value := range map[string]string{"X-Forwarded-Method": method, "X-Forwarded-Uri": uri, "X-Original-Url": url, "X-Forwarded-For": from, "X-Forwarded-Host": host} {
			if value != "" {
				r.Header[name] = []string{value}
			}
		}
		w := serve(t, s, r)
		path, _, _ := strings.Cut(uri, "?")
		if w.Code == 204 && (path == "/private" || strings.Contains(path, "/../") || strings.Contains(path, "//")) {
			t.Errorf("%q %q is allowed", uri, url)
		}
	})
}
