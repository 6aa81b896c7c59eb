// Package accesslog writes a line for each request: what it was, who sent it, and what was decided.
// It writes as log/slog does, without reflection.
//
// Start with [Log].
package accesslog

import (
	"io"
	"net/netip"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
)

// Log configures the access log. The zero value writes none.
type Log struct {
	// To gets each line in one Write. Requests wait for it, so it must not block.
	To io.Writer
	// Text writes key=value lines instead of JSON.
	Text bool
	// Keys says how the keys of refused requests are logged.
	Keys Keys
}

// logLine is a pooled buffer for one line.
type logLine struct{ lineEncoder }

var logLines = sync.Pool{New: func() any { return &logLine{lineEncoder{b: make([]byte, 0, 1<<10)}} }}

// maxKept is the largest buffer that is returned to the pool: a path may be long.
const maxKept = 16 << 10

// Write writes the line about r, without the fields that are empty.
func (a *Log) Write(r *Record) {
	l := logLines.Get().(*logLine)
	l.begin(a.Text, r.Time.Add(r.Duration))
	l.record(r)
	l.end()
	_, _ = a.To.Write(l.b) // the writer reports its own errors
	if cap(l.b) <= maxKept {
		logLines.Put(l)
	}
}

func (l *logLine) record(r *Record) {
	if r.Door != "" {
		l.asked(r)
	} else {
		l.served(r)
	}
	l.textIfSet("decision", r.Decision)
	l.textIfSet("decided_by", r.DecidedBy)
	l.textIfSet("rule", r.Rule)
	if r.Limit != nil {
		l.textIfSet("limit", limitText(r.Limit))
		l.textIfSet("scope", r.Limit.Scope)
	}
	l.textIfSet("key", r.Key)
	if r.Wait > 0 {
		l.milliseconds("wait_ms", r.Wait)
	}
	if r.Upstream != "" {
		l.text("upstream", r.Upstream)
		l.milliseconds("upstream_ms", r.UpstreamTime)
	}
	if r.Retries > 0 {
		l.number("retries", int64(r.Retries))
	}
	l.textIfSet("reason", r.Reason)
	if r.Cut {
		l.flag("cut")
	}
}

// served writes the fields of a request that passed through the gateway.
func (l *logLine) served(r *Record) {
	l.text("id", r.ID)
	l.text("client", clientText(r.Client))
	l.text("method", r.Method)
	l.text("host", r.Host)
	l.text("path", r.Path)
	l.text("proto", r.Proto)
	l.number("status", int64(r.Status))
	l.number("sent", r.Sent)
	l.number("received", r.Received)
	l.milliseconds("duration_ms", r.Duration)
	l.textIfSet("trace", r.Trace)
}

// asked writes the fields of a request for which a caller asked whether it may pass.
func (l *logLine) asked(r *Record) {
	l.text("door", r.Door)
	if r.Client.IsValid() {
		l.text("client", clientText(r.Client))
	}
	l.textIfSet("method", r.Method)
	l.textIfSet("host", r.Host)
	l.textIfSet("path", r.Path)
}

// limitText returns the limit without the name of its rule, which has its own field.
func limitText(l *tidegate.Limit) string { return strings.TrimPrefix(l.String(), l.Name+": ") }

// clientText returns the address; "@" for a peer without one, as on a Unix socket.
func clientText(a netip.Addr) string {
	if !a.IsValid() {
		return "@"
	}
	return a.String()
}
