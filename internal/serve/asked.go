package serve

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// callers makes and records decisions for the callers of a listener: they are counted under the name
// of the listener, and each gets a line in the access log.
type callers struct {
	desk  *desk.Desk
	count func(d *tidegate.Decision, n int64) // counts n decisions that were made without a gate
	// shadowed counts a decision of a limit in shadow mode; over means that it would have refused.
	shadowed func(limit *tidegate.Limit, over bool)
	log      func(*tidegate.Request, []tidegate.Check, tidegate.Decision) // logs a single decision; nil means that there is no log
	// observe is called for each decision that was made without a gate, in addition to count.
	observe func(*tidegate.Request, []tidegate.Check, tidegate.Decision)
	// refused logs requests that were refused before the rules were asked; nil means that there is
	// no log.
	refused func(strict.Refused)
}

// newCallers returns the callers of a listener; it is called once for each that is open.
func (s *server) newCallers(door string) *callers {
	var rules tidegate.Matcher = unlimited{}
	if s.rules != nil {
		rules = s.metrics.Matcher(s.rules.Live())
	}
	metrics := s.metrics.Door(door)
	c := &callers{count: metrics.ObserveMany, shadowed: metrics.Shadowed}
	note := func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
		s.noteRefusal(door, r, checks, &d)
	}
	if s.requests.To != nil {
		c.log = func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
			s.logAsked(door, r, checks, &d)
		}
		c.refused = func(r strict.Refused) {
			s.requests.Write(&accesslog.Record{Time: time.Now(), Door: door, Client: r.Client, Method: r.Method, Host: r.Host, Path: r.Path, Reason: r.Reason})
		}
		note = func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
			s.noteRefusal(door, r, checks, &d)
			c.log(r, checks, d)
		}
	}
	c.observe = func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
		s.offenders.Decided(checks, &d)
		note(r, checks, d)
	}
	observe := func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
		metrics.Decided(checks, &d) // this also updates the lists of offenders
		note(r, checks, d)
	}
	c.desk = desk.New(tidegate.NewGate(rules, s.behind(s.limited)).Observe(observe)).WithSlips(s.slipOf)
	return c
}

// logAsked writes the access log line of a decision for a caller. r is nil if the decision was
// about a bare key.
func (s *server) logAsked(door string, r *tidegate.Request, checks []tidegate.Check, d *tidegate.Decision) {
	record := accesslog.Record{Time: time.Now(), Door: door}
	if r != nil {
		record.Method, record.Host, record.Path = r.Method, r.Host, r.Path
		if ip, ok := r.Value("ip"); ok {
			record.Client = clientOf(ip)
		}
	}
	record.Decided(checks, d, s.config.Store.Kind, &s.requests)
	s.requests.Write(&record)
}

// clientOf returns the address of a client, or of its network; the zero Addr if ip is neither.
func clientOf(ip string) netip.Addr {
	if prefix, err := netip.ParsePrefix(ip); err == nil {
		return prefix.Addr()
	}
	addr, _ := netip.ParseAddr(ip)
	return addr
}

// unlimited is the Matcher if there are no rules.
type unlimited struct{}

// Match implements [tidegate.Matcher].
func (unlimited) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check { return dst }
