package traces

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// Span traces a request through the gateway: a span of the kind server, and in it one for the decision and
// one of the kind client for the upstream.
type Span struct {
	tracer   *Tracer
	ctx      context.Context // with span in it
	span     trace.Span
	deciding time.Time  // when the gate was asked; zero if it is not being asked
	client   trace.Span // nil before Forward
}

// Begin begins the span of a request that arrived at start. If trusted, it is part of the caller's
// trace; if not, of a new one.
func (t *Tracer) Begin(r *http.Request, trusted bool, start time.Time) *Span {
	ctx, span := t.tracer.Start(parentOf(r, trusted), nameOf(r.Method), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start))
	return &Span{tracer: t, ctx: ctx, span: span}
}

// ID returns the ID of the trace as in a traceparent; "" if the trace is not recorded.
func (s *Span) ID() string {
	if !s.span.IsRecording() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Deciding records that the gate is asked now.
func (s *Span) Deciding() {
	if s.span.IsRecording() {
		s.deciding = time.Now()
	}
}

// Decided adds a span for the decision in the record, which began at Deciding.
func (s *Span) Decided(r *accesslog.Record) {
	if s.deciding.IsZero() {
		return
	}
	_, span := s.tracer.tracer.Start(s.ctx, "decide", trace.WithTimestamp(s.deciding))
	span.SetAttributes(decision(r)...)
	span.End()
	s.deciding = time.Time{}
}

// decision returns the attributes of a decision: names of rules and limits, never keys.
func decision(r *accesslog.Record) (all []attribute.KeyValue) {
	for _, a := range [...][2]string{{"tidegate.decision", r.Decision}, {"tidegate.decided_by", r.DecidedBy}, {"tidegate.rule", r.Rule}} {
		if a[1] != "" {
			all = append(all, attribute.String(a[0], a[1]))
		}
	}
	if r.Limit != nil {
		all = append(all, attribute.String("tidegate.limit", r.Limit.String()))
	}
	if r.Wait > 0 {
		all = append(all, attribute.Int64("tidegate.wait_ms", r.Wait.Milliseconds()))
	}
	return all
}

// Forward begins the span of the request to the upstreams, and sets the headers by which they continue
// the trace. It removes those that the client sent.
func (s *Span) Forward(method string, header http.Header) {
	ctx, span := s.tracer.tracer.Start(s.ctx, nameOf(method), trace.WithSpanKind(trace.SpanKindClient))
	s.client = span
	delete(header, traceparent)
	delete(header, tracestate)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}

// Tried records how a try of an upstream ended.
func (s *Span) Tried(upstream string, status int, took time.Duration, err error) {
	if s.client == nil || !s.client.IsRecording() {
		return
	}
	about := []attribute.KeyValue{attribute.String("server.address", hostOf(upstream)), attribute.Float64("tidegate.took_ms", float64(took)/float64(time.Millisecond))}
	if err != nil {
		s.client.AddEvent("try failed", trace.WithAttributes(append(about, attribute.String("exception.message", err.Error()))...))
		s.client.SetStatus(codes.Error, "the upstream did not answer")
		return
	}
	s.client.AddEvent("answered", trace.WithAttributes(about...))
	s.client.SetAttributes(about[0], attribute.Int("http.response.status_code", status))
	s.client.SetStatus(codes.Unset, "")
	if status >= 500 {
		s.client.SetStatus(codes.Error, "")
	}
}

// End ends the span, with attributes from the record.
func (s *Span) End(r *accesslog.Record) {
	if s.client != nil {
		s.client.End()
	}
	if !s.span.IsRecording() {
		return
	}
	about := append(decision(r),
		attribute.String("http.request.method", r.Method), attribute.String("url.path", r.Path), attribute.String("server.address", r.Host),
		attribute.String("network.protocol.version", strings.TrimPrefix(r.Proto, "HTTP/")),
		attribute.Int("http.response.status_code", r.Status), attribute.String("tidegate.request_id", r.ID))
	if r.Client.IsValid() {
		about = append(about, attribute.String("client.address", r.Client.String()))
	}
	if r.Retries > 0 {
		about = append(about, attribute.Int("http.request.resend_count", r.Retries))
	}
	if r.Reason != "" {
		about = append(about, attribute.String("tidegate.reason", r.Reason))
	}
	s.span.SetAttributes(about...)
	if r.Status >= 500 || r.Cut {
		s.span.SetStatus(codes.Error, r.Reason)
	}
	s.span.End()
}

// nameOf returns the name of a span: the method, or HTTP if it is not a standard one, since names must
// be few.
func nameOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "HTTP"
}

// hostOf returns the address in the URL of an upstream.
func hostOf(upstream string) string {
	if _, host, ok := strings.Cut(upstream, "://"); ok {
		return host
	}
	return upstream
}
