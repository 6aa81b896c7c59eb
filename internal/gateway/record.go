package gateway

import (
	"context"
	"log/slog"
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
// it: no query, no header but the host, no body.
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
	Decision     string        // Passed, Waited, Soft, Refused, Denied; "": nobody was asked
	Rule         string        // that decided
	Wait         time.Duration // in line
	Reason       string        // of an answer that is the gateway's own
	Cut          bool          // the answer is not whole
}

// The words of [Record.Decision].
const (
	Passed  = "ok"
	Waited  = "waited"  // and passed
	Soft    = "soft"    // passed above a limit that has room to give
	Refused = "refused" // by a limit
	Denied  = "denied"  // by an access rule
)

// clientLeft is what nginx calls this, and many tools with it.
const clientLeft = 499

func decisionWord(d *tidegate.Decision) string {
	switch {
	case d.OK && d.Soft:
		return Soft
	case d.OK:
		return Passed
	case d.Limit != nil && d.Limit.Algorithm == tidegate.Deny:
		return Denied
	}
	return Refused
}

// log writes the line of the access log. What there was none of is left out.
func (r *Record) log(to *slog.Logger) {
	ctx := context.Background()
	if !to.Enabled(ctx, slog.LevelInfo) {
		return
	}
	var room [24]slog.Attr
	line := append(room[:0],
		slog.String("id", r.ID), slog.String("client", clientText(r.Client)),
		slog.String("method", r.Method), slog.String("host", r.Host), slog.String("path", r.Path), slog.String("proto", r.Proto),
		slog.Int("status", r.Status), slog.Int64("sent", r.Sent), slog.Int64("received", r.Received),
		milliseconds("ms", r.Duration))
	if r.Decision != "" {
		line = append(line, slog.String("decision", r.Decision))
	}
	if r.Rule != "" {
		line = append(line, slog.String("rule", r.Rule))
	}
	if r.Wait > 0 {
		line = append(line, milliseconds("wait_ms", r.Wait))
	}
	if r.Upstream != "" {
		line = append(line, slog.String("upstream", r.Upstream), milliseconds("upstream_ms", r.UpstreamTime))
	}
	if r.Retries > 0 {
		line = append(line, slog.Int("retries", r.Retries))
	}
	if r.Reason != "" {
		line = append(line, slog.String("reason", r.Reason))
	}
	if r.Cut {
		line = append(line, slog.Bool("cut", true))
	}
	to.LogAttrs(ctx, slog.LevelInfo, "request", line...)
}

// clientText has a word for peers without an address, as on a Unix socket.
func clientText(a netip.Addr) string {
	if !a.IsValid() {
		return "@"
	}
	return a.String()
}

func milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}
