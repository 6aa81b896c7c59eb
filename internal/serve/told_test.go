//go:build unix

package serve

import (
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	proto "go.opentelemetry.io/proto/otlp/trace/v1"
	wire "google.golang.org/protobuf/proto"
)

// A collector gets the spans of requests over every version of HTTP; the upstream goes on with
// the trace, and the access log has its id. What a client says about traces counts only if it is
// a trusted proxy.
func testTraces(t *testing.T, bin string) {
	var mu sync.Mutex
	var spans []*proto.Span
	var authorized bool
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var batch collect.ExportTraceServiceRequest
		if err := wire.Unmarshal(body, &batch); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		authorized = r.Header.Get("Authorization") == "Bearer of good news"
		for _, of := range batch.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}))
	defer collector.Close()
	var got sync.Map // path → traceparent
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.URL.Path, strings.Join(r.Header.Values("Traceparent"), ","))
	}))
	defer upstream.Close()
	w := newSandbox(t, bin, "rules.yaml", "version: 1\nrules:\n  - { name: few, match: /few, per: ip, limits: 1/hour }\n",
		"otlp.headers", "# for the collector\nAuthorization: Bearer of good news\n")
	cert, key := newCertificate(t, "localhost")
	w.write("cert.pem", cert)
	w.write("key.pem", key)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, trusted := range []bool{true, false} {
		for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
			mu.Lock()
			spans = nil
			mu.Unlock()
			args := []string{
				"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--upstreams=" + upstream.URL,
				"--telemetry.otlp.endpoint=" + collector.URL, "--telemetry.otlp.sample=100%", "--telemetry.otlp.headers_file=otlp.headers",
			}
			client := &http.Client{Transport: &http.Transport{}}
			if version == "HTTP/2.0" {
				args = append(args, "--tls.cert=cert.pem", "--tls.key=key.pem")
				client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
			}
			if trusted {
				args = append(args, "--trust.proxies=127.0.0.1")
			}
			s := w.start(nil, nil, args...)
			gateway, _ := s.ready()
			for _, path := range []string{"/few", "/few", "/free"} {
				r, _ := http.NewRequest("GET", gateway+path, nil)
				r.Header.Set("Traceparent", parent)
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				if res.Proto != version {
					t.Errorf("answered over %s", res.Proto)
				}
				res.Body.Close()
			}
			client.CloseIdleConnections()
			s.signal(syscall.SIGTERM) // sends what waits
			s.end()
			mu.Lock()
			kinds := make(map[string]int)
			for _, span := range spans {
				name := span.Name + " " + strings.ToLower(strings.TrimPrefix(span.Kind.String(), "SPAN_KIND_"))
				kinds[name]++
				if ours := hex.EncodeToString(span.TraceId) != parent[3:35]; ours == trusted {
					t.Errorf("%s, trusted %v: the span %s is of the trace %x", version, trusted, name, span.TraceId)
				}
			}
			if kinds["GET server"] != 3 || kinds["decide internal"] != 3 || kinds["GET client"] != 2 || !authorized {
				t.Errorf("%s, trusted %v: spans are %v, authorized %v", version, trusted, kinds, authorized)
			}
			mu.Unlock()
			for _, path := range []string{"/few", "/free"} {
				sent, _ := got.Load(path)
				if text, _ := sent.(string); len(text) != len(parent) || text == parent || strings.HasPrefix(text, parent[:35]) != trusted {
					t.Errorf("%s, trusted %v: the upstream gets %q", version, trusted, sent)
				}
			}
			lines := s.lines("request")
			for _, line := range lines {
				if id, _ := line["trace"].(string); len(id) != 32 || (id == parent[3:35]) != trusted {
					t.Errorf("%s, trusted %v: the access log has %v", version, trusted, line)
				}
			}
			if len(lines) != 3 {
				t.Errorf("%d lines", len(lines))
			}
		}
	}
}

// Without a collector, nothing is traced: headers of clients pass as they are, and the access log
// has no id.
func testNoTraces(t *testing.T, bin string) {
	var sent string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Traceparent") }))
	defer upstream.Close()
	w := newSandbox(t, bin)
	s := w.start(nil, nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--upstreams="+upstream.URL)
	gateway, _ := s.ready()
	if status := w.status(gateway+"/", "Traceparent", "whatever it is"); status != 200 || sent != "whatever it is" {
		t.Errorf("%d, and the upstream gets %q", status, sent)
	}
	if line := s.await(1, "request"); line["trace"] != nil {
		t.Errorf("the access log has %v", line)
	}
}

// Without an access log, the process log tells of some refusals of every door and rule, and of how
// many others there were. Keys are as log.keys says.
func testRefusals(t *testing.T, bin string) {
	const rules = "version: 1\nidentify: { user: client header X-User }\nrules:\n" +
		"  - { name: few, match: /few, per: user, limits: 1/hour }\n  - { name: closed, match: /closed, deny: true }\n"
	w := newSandbox(t, bin, "rules.yaml", rules)
	f := func(want int, shown any, args ...string) {
		t.Helper()
		s := w.start(nil, nil, append([]string{
			"--rules=rules.yaml", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--listen.check=127.0.0.1:0", "--listen.resp=127.0.0.1:0",
		}, args...)...)
		first := s.await(1, "serving")
		gateway, api, redis := first["gateway"].(string), first["check"].(string), strings.TrimPrefix(first["resp"].(string), "redis://")
		began := time.Now()
		for range 20 {
			w.status(gateway+"/few", "X-User", "42")
			w.status(gateway+"/closed", "X-User", "42")
			w.asks(once, api, "check", `{"path":"/few","ip":"192.0.2.1","headers":{"X-User":"42"}}`)
			w.command("tcp", redis, nil, "CL.THROTTLE k 0 1 3600")
		}
		seconds := int(time.Since(began)/time.Second) + 2
		s.signal(syscall.SIGTERM)
		s.end()
		rules, refused, others := make(map[string]int), 0, 0.0
		for _, line := range s.lines("refused") {
			rule, _ := line["rule"].(string)
			rules[rule]++
			refused++
			if n, ok := line["others"].(float64); ok {
				others += n
			}
			if rule == "few" && (line["key"] != shown || line["scope"] != "user" || line["path"] != "/few" || line["retry_after"] == nil || line["decision"] != "refused") {
				t.Errorf("%v", line)
			}
			if rule == "closed" && (line["decision"] != "denied" || line["door"] != "gateway") {
				t.Errorf("%v", line)
			}
		}
		for rule, n := range rules {
			if n > want*seconds {
				t.Errorf("%q: %s has %d lines in %d seconds", args, rule, n, seconds)
			}
		}
		if want == 0 && refused > 0 || want > 0 && (len(rules) != 3 || refused+int(others) > 78) {
			t.Errorf("%q: %d lines about %v, and %v others", args, refused, rules, others)
		}
	}
	const hashed = "73475cb40a568e8d"
	f(1, hashed, "--log.access=off")
	f(5, "42", "--log.access=off", "--telemetry.refusals=5", "--log.keys=plain")
	f(1, nil, "--log.access=off", "--log.keys=off")
	f(0, nil, "--log.access=off", "--telemetry.refusals=0")
	f(0, nil, "--log.access=access.log")
	f(2, hashed, "--log.access=access.log", "--telemetry.refusals=2")
}
