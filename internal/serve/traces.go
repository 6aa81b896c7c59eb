package serve

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry/traces"
)

// openTraces returns what sends traces; nil if they are not sent.
func (s *server) openTraces(c config.OTLP) (*traces.Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	headers, err := readHeaders(c.HeadersFile)
	if err != nil {
		return nil, err
	}
	return traces.New(context.Background(), traces.Options{
		Endpoint: c.Endpoint, Headers: headers, Sample: c.Sample,
		Service: c.Service, Version: s.version, Instance: s.config.Store.Redis.Instance, Log: s.log,
	})
}

// readHeaders reads a file of headers; it returns none if file is "".
func readHeaders(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := bounded.ReadFile(file, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("read the headers for traces: %w", err)
	}
	all, number := make(map[string]string), 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" || value == "" || strings.ContainsAny(name, " \t\"") {
			return nil, diag.List{{
				Pos: diag.Pos{File: file, Line: number, Col: 1}, Severity: diag.Error,
				Message: "this line is not a header", Hint: "write it as `NAME: VALUE`",
			}}
		}
		all[name] = value
	}
	return all, nil
}

// lastTraces is how long the shutdown waits for the collector.
const lastTraces = 2 * time.Second

func (s *server) closeTraces() {
	if s.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := s.traces.Close(ctx); err != nil {
		s.log.Warn("the last traces are lost", "err", err)
	}
}

// tracer returns the tracer for the gateway; nil if traces are not sent.
func (s *server) tracer() gateway.Tracer {
	if s.traces == nil {
		return nil
	}
	return tracer{s.traces}
}

// tracer begins spans for the gateway.
type tracer struct{ *traces.Tracer }

// Begin implements [gateway.Tracer].
func (t tracer) Begin(r *http.Request, trusted bool, start time.Time) gateway.Span {
	return span{t.Tracer.Begin(r, trusted, start)}
}

type span struct{ *traces.Span }

// Tried implements [gateway.Span].
func (s span) Tried(t gateway.Try) { s.Span.Tried(t.Upstream, t.Status, t.Took, t.Err) }
