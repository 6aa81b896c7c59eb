package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	proto "go.opentelemetry.io/proto/otlp/trace/v1"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

func open(t testing.TB, o Options) *Tracer {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Service, o.Version, o.delay = "gate", "v1", 10*time.Millisecond
	tracer, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tracer.Close(context.Background()) })
	return tracer
}

const (
	theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirSpan  = "00f067aa0ba902b7"
)

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/api/things?token=secret", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestSpansOfARequest(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, Options{Endpoint: c.URL, Sample: 1, Headers: map[string]string{"X-Tenant": "42"}})
	start := time.Now().Add(-time.Second)
	s := tracer.Begin(request(), false, start)
	record := &accesslog.Record{
		ID: "abc", Method: "GET", Host: "api.example.com", Path: "/api/things", Proto: "HTTP/2.0", Client: netip.MustParseAddr("192.0.2.7"),
		Decision: "waited", DecidedBy: "redis", Rule: "api", Wait: 20 * time.Millisecond,
		Key: "customer-17", Limit: tidegate.PerMinute(5), Status: 503, Reason: "The upstream did not answer in time.", Retries: 1,
	}
	s.Deciding()
	s.Decided(record)
	out := http.Header{"Traceparent": {"what the client wrote"}, "Tracestate": {"theirs=1"}}
	s.Forward("GET", out)
	s.Tried("http://127.0.0.1:9000", 0, time.Millisecond, errors.New("connection refused"))
	s.Tried("http://127.0.0.1:9001", 503, time.Millisecond, nil)
	s.End(record)

	spans := make(map[proto.Span_SpanKind]*proto.Span)
	for _, span := range c.await(t, 3) {
		spans[span.Kind] = span
	}
	server, decide, client := spans[proto.Span_SPAN_KIND_SERVER], spans[proto.Span_SPAN_KIND_INTERNAL], spans[proto.Span_SPAN_KIND_CLIENT]
	if server == nil || decide == nil || client == nil {
		t.Fatalf("spans are %v", spans)
	}
	if server.Name != "GET" || decide.Name != "decide" || client.Name != "GET" || len(server.ParentSpanId) != 0 ||
		!bytes.Equal(decide.ParentSpanId, server.SpanId) || !bytes.Equal(client.ParentSpanId, server.SpanId) || !bytes.Equal(client.TraceId, server.TraceId) {
		t.Errorf("%v\n%v\n%v", server, decide, client)
	}
	if server.StartTimeUnixNano != uint64(start.UnixNano()) || server.Status.Code != proto.Status_STATUS_CODE_ERROR || client.Status.Code != proto.Status_STATUS_CODE_ERROR {
		t.Errorf("%v\n%v", server, client)
	}
	for key, want := range map[string]any{
		"http.request.method": "GET", "url.path": "/api/things", "http.response.status_code": int64(503), "client.address": "192.0.2.7", "network.protocol.version": "2.0",
		"tidegate.decision": "waited", "tidegate.decided_by": "redis", "tidegate.rule": "api", "tidegate.wait_ms": int64(20), "tidegate.request_id": "abc", "http.request.resend_count": int64(1),
	} {
		if got := value(server.Attributes, key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if value(decide.Attributes, "tidegate.rule") != "api" || len(client.Events) != 2 || value(client.Attributes, "server.address") != "127.0.0.1:9001" {
		t.Errorf("%v\n%v", decide, client)
	}
	if want := "00-" + hex.EncodeToString(client.TraceId) + "-" + hex.EncodeToString(client.SpanId) + "-01"; out.Get("Traceparent") != want || out.Get("Tracestate") != "" || s.ID() != "" && s.ID() != hex.EncodeToString(server.TraceId) {
		t.Errorf("the upstream gets %v, want %s", out, want)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if value(c.process, "service.name") != "gate" || value(c.process, "service.version") != "v1" || c.header.Get("X-Tenant") != "42" || c.paths[0] != "/v1/traces" {
		t.Errorf("told as %v with %v to %q", c.process, c.header, c.paths)
	}
	all := server.String() + decide.String() + client.String()
	for _, secret := range []string{"customer-17", "secret", "theirs"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in a span", secret)
		}
	}
}

// The trace of a trusted caller goes on, as it says; nobody else's does, and nobody else decides
// whether one is recorded.
func TestWhoseTraceGoesOn(t *testing.T) {
	c := newCollector(t)
	parent, silent := "00-"+theirTrace+"-"+theirSpan+"-01", "00-"+theirTrace+"-"+theirSpan+"-00"
	f := func(sample float64, trusted, goesOn, recorded bool, headers ...string) {
		t.Helper()
		tracer := open(t, Options{Endpoint: c.URL, Sample: sample})
		r := request(headers...)
		s := tracer.Begin(r, trusted, time.Now())
		out := r.Header.Clone()
		s.Forward("GET", out)
		id := s.ID()
		s.End(&accesslog.Record{})
		sent := out.Values("Traceparent")
		if len(sent) != 1 || len(sent[0]) != 55 || strings.Contains(sent[0], theirTrace) != goesOn || strings.HasSuffix(sent[0], "-01") != recorded || strings.Contains(sent[0], theirSpan) {
			t.Errorf("sample %v, trusted %v, %q: the upstream gets %q", sample, trusted, headers, sent)
		}
		if (id != "") != recorded || recorded && !strings.Contains(sent[0], id) {
			t.Errorf("sample %v, trusted %v, %q: the id is %q", sample, trusted, headers, id)
		}
		if state := out.Get("Tracestate"); (state != "") != (goesOn && r.Header.Get("Tracestate") != "") {
			t.Errorf("trusted %v: the upstream gets the state %q", trusted, state)
		}
	}
	for _, sample := range []float64{0, 1} {
		own := sample == 1
		f(sample, true, true, true, "traceparent", parent, "tracestate", "vendor=1")
		f(sample, true, true, false, "traceparent", silent)
		f(sample, false, false, own, "traceparent", parent, "tracestate", "vendor=1")
		f(sample, false, false, own, "traceparent", silent)
		f(sample, true, false, own)
		f(sample, true, false, own, "tracestate", "vendor=1")
		f(sample, true, false, own, "traceparent", parent, "traceparent", parent)
		for _, odd := range []string{
			"", "00", "00-" + theirTrace, "ff-" + theirTrace + "-" + theirSpan + "-01", "00-" + strings.Repeat("0", 32) + "-" + theirSpan + "-01",
			"00-" + theirTrace + "-" + strings.Repeat("0", 16) + "-01", "00-" + strings.ToUpper(theirTrace) + "-" + theirSpan + "-01", parent + "-more", parent + "," + parent, strings.Repeat("x", 1<<16),
		} {
			f(sample, true, false, own, "traceparent", odd)
		}
	}
}

func TestSampling(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, Options{Endpoint: c.URL, Sample: 0.1})
	const n = 20_000
	recorded := 0
	for range n {
		s := tracer.Begin(request(), false, time.Now())
		if s.ID() != "" {
			recorded++
		}
	}
	if recorded < n/10-300 || recorded > n/10+300 { // seven deviations
		t.Errorf("%d of %d are recorded", recorded, n)
	}
}

// Names of spans are few, whatever clients send.
func TestNamesAreFew(t *testing.T) {
	for method, want := range map[string]string{"GET": "GET", "PATCH": "PATCH", "get": "HTTP", "BREW": "HTTP", "": "HTTP"} {
		if got := nameOf(method); got != want {
			t.Errorf("%q is called %q", method, got)
		}
	}
}

// A collector that is gone, or does not take spans, holds up nobody, and is told of once.
func TestCollectorThatIsGone(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer refuses.Close()
	for _, endpoint := range []string{refuses.URL, "http://127.0.0.1:" + testdep.FreePort(t)} {
		var log testdep.Output
		tracer := open(t, Options{Endpoint: endpoint, Sample: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 * maxQueue { // more than find room
			s := tracer.Begin(request(), false, time.Now())
			s.End(&accesslog.Record{Method: "GET"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_ = tracer.Close(ctx)
		cancel()
		testdep.Await(30*time.Second, func() bool { return strings.Contains(log.String(), "traces cannot be sent") })
		tracer.complain.Handle(errors.New("one more"))
		if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 {
			t.Errorf("%s: told %d times:\n%s", endpoint, n, log.String())
		}
	}
}
