// Package traces sends spans of requests to an OpenTelemetry collector, by OTLP over HTTP.
//
// It is for `tidegate serve` alone: programs that use the library bring their own tracing. No span
// has a key of a caller, a query or a header in it. Requests do not wait for the collector: what it
// does not take in time is dropped.
//
// Start with [New].
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options of [New].
type Options struct {
	// Endpoint is the URL of the collector, such as http://127.0.0.1:4318. Without a path, traces
	// go to /v1/traces.
	Endpoint string
	// Headers are sent to the collector, for example for authentication.
	Headers map[string]string
	// Sample is the share of the traces begun here that are recorded: 0.01 is one in a hundred. For the
	// trace of a trusted caller, the caller has decided.
	Sample float64
	// Service, Version and Instance identify this process; Instance may be "".
	Service, Version, Instance string
	// Log gets the reason why spans cannot be sent, at most once a minute.
	Log *slog.Logger

	delay time.Duration // before a batch is sent, in tests; 0 means the SDK's, 5s
}

// Tracer begins spans. Use [New], and Close it at the end.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	complain complaints
}

const (
	// maxQueue is how many spans wait for the collector at most; others are dropped.
	maxQueue = 4096
	// exportTimeout is how long the collector may take.
	exportTimeout = 10 * time.Second
)

// New returns a Tracer. It does not wait for the collector, which may be down.
func New(ctx context.Context, o Options) (*Tracer, error) {
	endpoint, err := withPath(o.Endpoint)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHeaders(o.Headers), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", o.Endpoint, err)
	}
	about := []attribute.KeyValue{attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)}
	if o.Instance != "" {
		about = append(about, attribute.String("service.instance.id", o.Instance))
	}
	is, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(about...))
	if err != nil {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	batch := []sdktrace.BatchSpanProcessorOption{sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithExportTimeout(exportTimeout)}
	if o.delay > 0 {
		batch = append(batch, sdktrace.WithBatchTimeout(o.delay))
	}
	t := &Tracer{complain: complaints{log: o.Log}}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Sample))),
		sdktrace.WithResource(is), sdktrace.WithBatcher(exporter, batch...))
	t.tracer = t.provider.Tracer("tidegate.dev/tidegate", trace.WithInstrumentationVersion(o.Version))
	otel.SetErrorHandler(&t.complain) // the SDK has one for the whole process
	return t, nil
}

// withPath returns the URL of a collector, with the path for traces if it has none.
func withPath(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Close sends the spans that wait, and stops. It returns when ctx ends at the latest.
func (t *Tracer) Close(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// parentOf returns the context of a request: with the caller's span as parent if it is trusted, and has
// sent exactly one.
func parentOf(r *http.Request, trusted bool) context.Context {
	ctx := context.Background()
	if trusted && len(r.Header.Values(traceparent)) == 1 {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	return ctx
}

// The headers of W3C Trace Context.
const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// complaints logs errors of the SDK, at most one per complainEvery: while a collector is gone there would
// be one every few seconds.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last time.Time // under mu
}

const complainEvery = time.Minute

// Handle implements [otel.ErrorHandler].
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= complainEvery {
		c.last = now
		c.log.Warn("traces cannot be sent: spans are dropped", "err", err)
	}
}
