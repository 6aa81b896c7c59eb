package gateway

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
)

// Observer gets events for metrics. It is called by many goroutines at once, and requests
// wait for it.
type Observer interface {
	// Tried is called for every try of an upstream, with the response headers or the error.
	Tried(Try)
	// Done is called at the end of every request. It must not keep the record.
	Done(*Record)
}

// Try is one attempt to send a request to an upstream.
type Try struct {
	Upstream string        // "http://127.0.0.1:9000"
	Took     time.Duration // until the response headers
	Status   int           // 0 if there was no response
	Err      error         // why there was no response
	Retry    bool          // it is the second of its request
}

// Record describes a finished request. It contains no secrets: no query, no header but the
// host, no body, and keys only as AccessLog.Keys says.
type Record struct {
	Time     time.Time
	ID       string
	Client   netip.Addr
	Method   string
	Host     string
	Path     string
	Proto    string
	Status   int   // of the response; 499 if the client left before
	Sent     int64 // bytes of the response body
	Received int64 // bytes of the request body
	Duration time.Duration

	Upstream     string        // of the last try; "" if there was none
	UpstreamTime time.Duration // until the response headers, all tries together
	Retries      int
	Decision     string          // a word of package outcome; "" without a gate
	DecidedBy    string          // a word of package outcome; "" if no rule applied
	Rule         string          // that decided
	Limit        *tidegate.Limit // that refused it; nil if it was admitted
	Key          string          // that is over Limit, as it may be logged; "" if the limit has no key, or it may not
	Wait         time.Duration   // in the queue
	Reason       string          // of a response by the gateway itself
	Cut          bool            // the response is not complete
}

// statusClientGone is the status that nginx and many tools use for a client that left.
const statusClientGone = 499
