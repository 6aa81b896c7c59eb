package gateway

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
)

// Observer is told what happens, for metrics. It is called by many goroutines at
// once, and requests wait for it.
type Observer interface {
	// Tried is told of every try of an upstream, when the head of the answer is
	// there or there will be none.
	Tried(Try)
	// Done is told of every request, once it is over. It must not keep the record.
	Done(*Record)
}

// Try is one attempt to have a request answered.
type Try struct {
	Upstream string        // "http://127.0.0.1:9000"
	Took     time.Duration // until the head of the answer
	Status   int           // 0: no answer
	Err      error         // why there was none
	Retry    bool          // it is the second for its request
}

// Record is what is known of a request when it is over. There are no secrets in
// it: no query, no header but the host, no body, and of keys what AccessLog.Keys says.
type Record struct {
	Time     time.Time
	ID       string
	Client   netip.Addr
	Method   string
	Host     string
	Path     string
	Proto    string
	Status   int   // of the answer; 499: the client left before there was one
	Sent     int64 // bytes of the answer's body
	Received int64 // bytes of the request's body
	Duration time.Duration

	Upstream     string        // that had it last; "": none
	UpstreamTime time.Duration // until the head of its answer, all tries together
	Retries      int
	Decision     string          // the word of package outcome; "": nobody was asked
	DecidedBy    string          // the same; "": nobody had to
	Rule         string          // that decided
	Limit        *tidegate.Limit // that did not admit it; nil: it was admitted
	Key          string          // that is over Limit, as it may be shown; "": everyone's, or not to be shown
	Wait         time.Duration   // in line
	Reason       string          // of an answer that is the gateway's own
	Cut          bool            // the answer is not whole
}

// clientLeft is what nginx calls this, and many tools with it.
const clientLeft = 499
