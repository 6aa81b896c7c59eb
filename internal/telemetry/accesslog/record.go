package accesslog

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// Record describes a finished request. It contains no secrets: no query, no header but the
// host, no body, and keys only as Log.Keys says.
type Record struct {
	// Door is the listener that was asked, if it is not the gateway. The outcome of the request is
	// then unknown, and the fields ID to Duration that describe it are not used.
	Door     string
	Time     time.Time
	ID       string
	Trace    string // the id of its trace; "" if that is not recorded
	Client   netip.Addr
	Method   string
	Host     string
	Path     string
	Proto    string
	Status   int   // of the response; 499 if the client left before
	Sent     int64 // bytes of the response body
	Received int64 // bytes of the request body
	Duration time.Duration

	Upstream     string        // the last one tried; "" if none was
	UpstreamTime time.Duration // until the response headers, all tries together
	Retries      int
	Decision     string          // a word of package outcome; "" without a gate
	DecidedBy    string          // a word of package outcome; "" if no rule applied
	Rule         string          // the one that decided
	Limit        *tidegate.Limit // the one that refused; nil if the request was admitted
	Key          string          // key that exceeds Limit, in the form that may be logged; "" if there is none, or none may be logged
	Wait         time.Duration   // in the queue
	Reason       string          // of a response by the gateway itself
	Cut          bool            // the response was cut off
}

// Decided records a decision and, if there is a log to show it, the key of a refused request. store
// is the name of the counters. It keeps neither checks nor keys.
func (r *Record) Decided(checks []tidegate.Check, d *tidegate.Decision, store string, log *Log) {
	r.Decision = outcome.Of(d).String()
	if outcome.Decided(d) {
		r.DecidedBy = outcome.DecidedBy(d.Receipt.Origin, store)
	}
	l := d.Limit
	if l == nil {
		return
	}
	r.Rule = l.Name
	if l.Terms != nil && l.Terms.Rule != "" {
		r.Rule = l.Terms.Rule
	}
	if d.OK || log.To == nil {
		return
	}
	r.Limit = l
	for i := range checks {
		// A layer around a store may have replaced the limit by one with the same counter.
		if c := &checks[i]; c.Limit == l || c.Limit != nil && c.Limit.Identity() == l.Identity() {
			r.Key = log.Keys.show(c.Key, l)
			return
		}
	}
}
