package gateway

import (
	"io"
	"net/netip"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
)

// AccessLog is where the lines about requests go. The zero value writes none.
type AccessLog struct {
	// To gets each line in one Write, and requests wait for it: it should not.
	To io.Writer
	// Text writes lines for people to read, instead of JSON.
	Text bool
	// Keys says how the keys of refused requests are shown.
	Keys Keys
}

// logLine is the memory that a line is written in.
type logLine struct{ pairs }

var logLines = sync.Pool{New: func() any { return &logLine{pairs{b: make([]byte, 0, 1<<10)}} }}

// maxKept bounds the memory that a line is kept with: a path may be long.
const maxKept = 16 << 10

// write writes the line about r. What there was none of is left out.
func (a *AccessLog) write(r *Record) {
	l := logLines.Get().(*logLine)
	l.begin(a.Text, r.Time.Add(r.Duration))
	l.record(r)
	l.end()
	_, _ = a.To.Write(l.b) // whoever writes it looks after that
	if cap(l.b) <= maxKept {
		logLines.Put(l)
	}
}

func (l *logLine) record(r *Record) {
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
	l.some("decision", r.Decision)
	l.some("decided_by", r.DecidedBy)
	l.some("rule", r.Rule)
	if r.Limit != nil {
		l.some("limit", limitText(r.Limit))
		l.some("scope", r.Limit.Scope)
	}
	l.some("key", r.Key)
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
	l.some("reason", r.Reason)
	if r.Cut {
		l.yes("cut")
	}
}

// limitText is without the name of the rule, which has a place of its own.
func limitText(l *tidegate.Limit) string { return strings.TrimPrefix(l.String(), l.Name+": ") }

// clientText has a word for peers without an address, as on a Unix socket.
func clientText(a netip.Addr) string {
	if !a.IsValid() {
		return "@"
	}
	return a.String()
}
