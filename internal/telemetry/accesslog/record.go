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
	// Door is the listener that asked, where it is not the gateway. What became of the
	// request is not known there, and the fields up to Duration have no meaning.
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

// Decided puts a decision into the record, and the key of who was refused if there is a log
// to show it. store is the word for where the counters are. It keeps neither checks nor keys.
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
		// A layer around a store may have replaced the limit by one of the same counter.
		if c := &checks[i]; c.Limit == l || c.Limit != nil && c.Limit.Identity() == l.Identity() {
			r.Key = log.Keys.show(c.Key, l)
			return
		}
	}
}
