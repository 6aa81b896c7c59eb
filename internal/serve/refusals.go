package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
	"tidegate.dev/tidegate/internal/telemetry/sampled"
)

// refusals logs a sample of the refused requests, for use without an access log.
type refusals struct {
	log    *slog.Logger
	store  string        // where the counters are
	as     accesslog.Log // how keys are shown; it is not written to
	sample *sampled.Sample
}

// newRefusals returns nil if refusals are not logged.
func newRefusals(c *config.Config, log *slog.Logger) *refusals {
	if c.Telemetry.Refusals == 0 {
		return nil
	}
	return &refusals{
		log: log, store: c.Store.Kind, sample: sampled.New(c.Telemetry.Refusals),
		as: accesslog.Log{To: io.Discard, Keys: keysWords[c.Log.Keys]},
	}
}

// noteRefusal passes a decision to all that record refusals. r is nil if the decision was about a
// bare key.
func (s *server) noteRefusal(door string, r *tidegate.Request, checks []tidegate.Check, d *tidegate.Decision) {
	if d.OK {
		return
	}
	now := time.Now()
	s.refusals.note(door, r, checks, d, now)
	s.fit.Refused(checks, d, now)
}

// note logs a decision if it is a refusal and is sampled. q is nil if the decision was about a bare
// key.
func (r *refusals) note(door string, q *tidegate.Request, checks []tidegate.Check, d *tidegate.Decision, now time.Time) {
	if r == nil || d.OK || d.Limit == nil || errors.Is(d.Err, context.Canceled) {
		return
	}
	rule := d.Limit.Name
	if d.Limit.Terms != nil && d.Limit.Terms.Rule != "" {
		rule = d.Limit.Terms.Rule
	}
	if ok, left := r.sample.Pick(rule, now); ok {
		r.write(door, q, checks, d, left)
	}
}

func (r *refusals) write(door string, q *tidegate.Request, checks []tidegate.Check, d *tidegate.Decision, left int64) {
	var record accesslog.Record
	record.Decided(checks, d, r.store, &r.as)
	attrs := make([]slog.Attr, 0, 12)
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	add("door", door)
	if q != nil {
		add("method", q.Method)
		add("host", q.Host)
		add("path", q.Path)
		if ip, ok := q.Value("ip"); ok {
			add("client", ip)
		}
	}
	add("decision", record.Decision)
	add("decided_by", record.DecidedBy)
	add("rule", record.Rule)
	if d.Limit.Algorithm != tidegate.Deny {
		add("limit", strings.TrimPrefix(d.Limit.String(), d.Limit.Name+": "))
	}
	add("scope", d.Limit.Scope)
	add("key", record.Key)
	if d.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retry_after", d.RetryAfter))
	}
	if left > 0 {
		attrs = append(attrs, slog.Int64("others", left))
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "refused", attrs...)
}
