package gateway

import (
	"net/http"
	"time"

	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// Tracer begins the spans of requests.
type Tracer interface {
	// Begin is called for every request, when it has arrived. Trace headers of the request count
	// only if trusted.
	Begin(r *http.Request, trusted bool, start time.Time) Span
}

// Span is a request in a trace. The goroutine that serves the request calls it.
type Span interface {
	// ID is the id of the trace for the access log; "" if the trace is not recorded.
	ID() string
	// Deciding is called when the gate is asked, and Decided when it has answered. Decided must not
	// keep the record.
	Deciding()
	Decided(*accesslog.Record)
	// Forward is called when an admitted request is passed on, with its headers, and Tried after
	// each try.
	Forward(method string, header http.Header)
	Tried(Try)
	// End is called last. It must not keep the record.
	End(*accesslog.Record)
}
