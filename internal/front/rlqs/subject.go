package rlqs

import (
	"context"
	"errors"
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/rules/envoy"
)

// subject is what a bucket is held to.
type subject struct {
	assigned assignment
	limit    *tidegate.Limit // nil if there is none
	key      string
	ahead    *ledger.Ahead // nil means that this process divides the limit
	native   bool          // found by native rules, which are asked again
	rules    *envoy.Set    // in force at the lookup
	why      error         // of unfit
}

// assignment is what kind of assignment a bucket gets.
type assignment uint8

const (
	limited assignment = iota // it gets a part of the limit
	allowed                   // no rule limits it, or only in shadow mode
	denied                    // a rule denies everything
	unfit                     // denied, because the rule cannot be divided
)

// Reasons why a rule is unfit.
var (
	errSeveralLimits = errors.New("it has several limits: a bucket of Envoy is held to one token_bucket")
	errSplit         = errors.New("its consistency is split, and the quota service divides it itself: leave it out")
	// errSetAside: a proxy would use up what it takes ahead whatever remains by then.
	errSetAside = errors.New("a share of it is set aside for more important classes, and proxies would take it ahead: remove `set_aside`")
)

// find returns what a bucket id is held to: by the rules of a file if one has the domain, otherwise by
// the native ones.
func (s *Server) find(ctx context.Context, domain string, entries []envoy.Entry) (sub subject) {
	rules := s.o.Domains()
	if d := rules.Domain(domain); d != nil {
		sub = s.findInFile(d, entries)
	} else if s.o.Desk != nil {
		sub = s.findNative(ctx, domain, entries)
		sub.native = true
	} else {
		sub.assigned = allowed
	}
	if s.o.Shadow {
		sub.assigned = allowed
	}
	sub.rules = rules
	return sub
}

func (s *Server) findInFile(d *envoy.Domain, entries []envoy.Entry) subject {
	rule := d.FindAny(entries)
	if rule == nil || rule.Unlimited || len(rule.Limits) == 0 {
		return subject{assigned: allowed}
	}
	if rule.Shadow {
		return subject{assigned: allowed, limit: rule.Limits[0]}
	}
	checks := make([]tidegate.Check, len(rule.Limits))
	key := rule.Key(entries)
	for i, l := range rule.Limits {
		checks[i] = tidegate.Check{Key: key, Limit: l}
	}
	return s.held(checks)
}

// findNative asks the native rules about a request whose attributes are the entries of a bucket id.
func (s *Server) findNative(ctx context.Context, domain string, entries []envoy.Entry) subject {
	q := new(question.Question)
	for _, e := range entries {
		q.AddEntry(e.Key, e.Value)
	}
	q.AddDomain(domain)
	r, problem, err := q.Request(s.o.Paths)
	if problem != nil || err != nil { // the rules cannot match such a request
		return subject{assigned: denied}
	}
	checks, refused := s.o.Desk.Held(ctx, r)
	if refused {
		return subject{assigned: denied}
	}
	return s.held(checks)
}

// held returns the subject of a bucket that is held to checks.
func (s *Server) held(checks []tidegate.Check) subject {
	switch len(checks) {
	case 0:
		return subject{assigned: allowed}
	case 1:
	default:
		return subject{assigned: unfit, limit: checks[0].Limit, why: errSeveralLimits}
	}
	l := checks[0].Limit
	sub := subject{limit: l, key: checks[0].Key}
	switch {
	case l.Algorithm == tidegate.Deny:
		sub.assigned = denied
	case l.Algorithm != tidegate.TokenBucket:
		sub.assigned, sub.why = unfit, fmt.Errorf("its algorithm is %s: the quota service divides a token_bucket", l.Algorithm)
	case l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Split:
		sub.assigned, sub.why = unfit, errSplit
	case checks[0].Floor > 0:
		sub.assigned, sub.why = unfit, errSetAside
	case s.o.Store != nil:
		ahead, err := ledger.NewAhead(numbers(l), s.o.Times)
		if err != nil {
			sub.assigned, sub.why = unfit, fmt.Errorf("%w: raise it, or shorten rls.quota.ttl", err)
		}
		sub.ahead = &ahead
	}
	return sub
}

// equal reports whether two lookups found the same; ahead follows from limit.
func (is *subject) equal(other *subject) bool {
	return is.assigned == other.assigned && is.limit == other.limit && is.key == other.key
}

// numbers returns the numbers of a token bucket as the ledger has them.
func numbers(l *tidegate.Limit) ledger.Limit {
	return ledger.Limit{Events: l.Events, Period: l.Period, Burst: l.Burst}
}

// ruleOf returns the name of a limit's rule; "" if there is no limit.
func ruleOf(l *tidegate.Limit) string {
	switch {
	case l == nil:
		return ""
	case l.Terms != nil && l.Terms.Rule != "":
		return l.Terms.Rule
	}
	return l.Name
}

// logUnfit warns once per rule that its limit cannot be divided.
func (s *Server) logUnfit(sub *subject) {
	const most = 1000 // rules
	name := ruleOf(sub.limit)
	s.mu.Lock()
	fresh := !s.unfit[name] && len(s.unfit) < most
	if fresh {
		s.unfit[name] = true
	}
	s.mu.Unlock()
	if fresh {
		s.o.Log.Warn("the quota service cannot divide the limit of a rule, and denies what it limits", "rule", name, "why", sub.why.Error())
	}
}
