package serve

import (
	"net/netip"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// callers is what a listener for callers asks: its decisions are counted under its name,
// and each gets a line in the access log.
type callers struct {
	desk  *desk.Desk
	count func(d *tidegate.Decision, n int64) // decisions without a gate
	// shadowed counts a decision of a limit that never refuses: over means that it would have.
	shadowed func(limit *tidegate.Limit, over bool)
	log      func(*tidegate.Request, []tidegate.Check, tidegate.Decision) // one of them; nil means there is no log
	// observe is told of decisions without a gate, one by one, beside count.
	observe func(*tidegate.Request, []tidegate.Check, tidegate.Decision)
	// refused gets requests that the rules were not asked about; nil means there is no log
	refused func(strict.Refused)
}

// newCallers is for a listener that is open; it is called once for each.
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
		metrics.Decided(checks, &d) // which tells the lists of offenders
		note(r, checks, d)
	}
	c.desk = desk.New(tidegate.NewGate(rules, s.behind(s.limited)).Observe(observe)).WithSlips(s.slipOf)
	return c
}

// logAsked writes the line about a decision that somebody asked for. There may be no
// request, but a key alone.
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

// clientOf is the address of a client, or of its network.
func clientOf(ip string) netip.Addr {
	if prefix, err := netip.ParsePrefix(ip); err == nil {
		return prefix.Addr()
	}
	addr, _ := netip.ParseAddr(ip)
	return addr
}

// unlimited are the rules where there are none.
type unlimited struct{}

// Match implements [tidegate.Matcher].
func (unlimited) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check { return dst }
