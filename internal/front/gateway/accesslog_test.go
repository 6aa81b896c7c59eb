package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestAccessLog(t *testing.T) {
	var log logBuffer
	upstream := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", int(n)))
	})
	g := start(t, Options{
		Gate:      gateOf(t, wireRules+"  - { name: search, match: /search, per: everyone, limits: 1/hour, over: { soft: 100% } }\n"),
		Upstreams: []*url.URL{upstream}, AccessLog: log.access(),
	}, nil)
	lines := 0
	f := func(method, target, body string, want map[string]any, absent ...string) {
		t.Helper()
		r := newRequest(t, method, g.url+target, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret")
		r.Close = true // the client asks twice when an old connection breaks
		if res, err := client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			want["id"] = res.Header.Get("X-Request-Id")
		}
		lines++
		soon(t, "the line is there", func() bool { return len(log.lines()) == lines && log.lines()[lines-1] != "" })
		last := log.lines()[lines-1]
		got := map[string]any{}
		if err := json.Unmarshal([]byte(last), &got); err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %v, want %v in %s", key, got[key], value, last)
			}
		}
		for _, key := range append(absent, "wait_ms", "retries") {
			if got[key] != nil {
				t.Errorf("%s is in %s", key, last)
			}
		}
		if ms, _ := got["duration_ms"].(float64); ms <= 0 {
			t.Errorf("it took no time: %s", last)
		}
		if strings.Contains(last, "secret") {
			t.Errorf("a secret: %s", last)
		}
	}
	base := "http://" + upstream.Host
	f("POST", "/a?token=secret", "hello", map[string]any{
		"client": "127.0.0.1", "method": "POST", "host": g.addr, "path": "/a", "proto": "HTTP/1.1", "status": 200.0, "sent": 5.0, "received": 5.0,
		"decision": "ok", "upstream": base,
	}, "rule", "reason", "cut")
	f("GET", "/limited", "", map[string]any{"status": 200.0, "decision": "ok", "rule": "limited", "upstream": base})
	f("GET", "/limited", "", map[string]any{"status": 429.0, "decision": "refused", "decided_by": "store", "rule": "limited", "limit": "1/1h0m0s sliding_log"}, "upstream", "upstream_ms", "key")
	f("GET", "/denied/", "", map[string]any{"status": 403.0, "decision": "denied", "rule": "denied"}, "upstream")
	f("GET", "/search", "", map[string]any{"decision": "ok", "rule": "search"})
	f("GET", "/search", "", map[string]any{"decision": "soft", "rule": "search"})
	f("GET", "/a%2Fb", "", map[string]any{"status": 400.0, "path": "/a/b", "reason": "The path contains an encoded slash or a backslash."}, "decision")
	f("GET", "/cut", "", map[string]any{"status": 200.0, "sent": 4.0, "cut": true})
}
