package gateway

import (
	"time"

	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// Observer gets events for metrics. It is called by many goroutines at once, and requests
// wait for it.
type Observer interface {
	// Tried is called for every try of an upstream, with the response headers or the error.
	Tried(Try)
	// Done is called at the end of every request. It must not keep the record.
	Done(*accesslog.Record)
}

// Try is one attempt to send a request to an upstream.
type Try struct {
	Upstream string        // "http://127.0.0.1:9000"
	Took     time.Duration // until the response headers
	Status   int           // 0 if there was no response
	Err      error         // why there was no response
	Retry    bool          // it is the second of its request
}

// statusClientGone is the status that nginx and many tools use for a client that left.
const statusClientGone = 499
