package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"tidegate.dev/tidegate"
)

// Dialect is how a response tells its client where it stands. All of them
// report the Decision that decided this request and round times up to whole
// seconds. A request that nothing limits, that an access rule refused or that the
// fail mode decided gets no such headers: there are no numbers to report.
//
// A rule may have a ceiling above the limit that it tells: the headers then show
// the limit, and an admitted request that is above it gets X-RateLimit-Soft: true.
type Dialect uint8

const (
	// Draft11 is draft-ietf-httpapi-ratelimit-headers-11, the default:
	//
	//	RateLimit-Policy: "burst";q=100;w=60
	//	RateLimit: "burst";r=50;t=30
	//
	// The name is the limit's, or "default". t is, for an admitted request,
	// when the limit is as good as new, and for a refused one the same as
	// Retry-After. Slots have qu="concurrent-requests" and no times. When
	// limits nest, each adds its own entry.
	Draft11 Dialect = iota
	// Draft6 is draft 6 of the same: RateLimit-Limit, RateLimit-Remaining,
	// RateLimit-Reset, and RateLimit-Policy as in "100;w=60". Reset is, for a
	// refused request, the same as Retry-After.
	Draft6
	// X is X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset and, for
	// refused requests, X-RateLimit-Retry-After. Limit is what Remaining starts
	// from; Reset is always when the limit is as good as new.
	X
	// NoHeaders tells nothing but the Retry-After of a refusal.
	NoHeaders
)

// Reset is how the dialects X and Draft6 tell a moment. The t of Draft11 and
// Retry-After are always a delta.
type Reset uint8

const (
	// ResetDelta is in how many seconds: no clocks need to agree.
	ResetDelta Reset = iota
	// ResetEpoch is Unix time in seconds; all responses about one window name
	// the same second.
	ResetEpoch
)

// form is how the headers of one response are written.
type form struct {
	dialect Dialect
	reset   Reset
}

// describe sets the headers of the dialect.
func (o *Options) describe(h http.Header, d *tidegate.Decision, p *policy, known *policies) {
	if p == nil || p.silent || d.Err != nil {
		return
	}
	f := form{o.Headers, o.Reset}
	if p.ownForm {
		f = p.form(f)
	}
	switch f.dialect {
	case NoHeaders:
		return
	case Draft11:
		draft11(h, d, p, known)
	case Draft6:
		f.three(h, "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", d, p)
		if list := known.list6(p); list != "" {
			h["Ratelimit-Policy"] = []string{list}
		}
	case X:
		f.three(h, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", d, p)
		if !d.OK && !d.Never {
			h["X-Ratelimit-Retry-After"] = []string{strconv.FormatInt(retrySeconds(d), 10)}
		}
	}
	if d.Soft {
		h["X-Ratelimit-Soft"] = []string{"true"}
	}
}

// draft11 is on the way of every admitted request: one allocation, or two for
// what was not said lately.
func draft11(h http.Header, d *tidegate.Decision, p *policy, known *policies) {
	reset := int64(0)
	if !p.slots {
		reset = resetSeconds(d)
	}
	values := known.said.values(p, p.left(d), reset, known.list11(p))
	if len(h) > 0 && len(h["Ratelimit"]) > 0 { // an outer limit's
		h["Ratelimit"] = append(h["Ratelimit"], values[0])
		h["Ratelimit-Policy"] = append(h["Ratelimit-Policy"], values[1])
		return
	}
	h["Ratelimit"] = values[0:1:1]
	h["Ratelimit-Policy"] = values[1:2:2]
}

// three sets what Draft6 and X have in common.
func (f form) three(h http.Header, limit, remaining, reset string, d *tidegate.Decision, p *policy) {
	values := &[3]string{p.capacity, strconv.FormatInt(p.left(d), 10)}
	h[limit] = values[0:1:1]
	h[remaining] = values[1:2:2]
	if p.slots {
		return // nobody can tell when a slot is given back
	}
	after := ceilSeconds(d.ResetAfter)
	if f.dialect == Draft6 {
		after = resetSeconds(d)
	}
	if f.reset == ResetEpoch {
		after = f.epoch(d, time.Now())
	}
	values[2] = strconv.FormatInt(after, 10)
	h[reset] = values[2:3:3]
}

// resetSeconds is the reset of the IETF dialects, where Retry-After should not
// be earlier than it.
func resetSeconds(d *tidegate.Decision) int64 {
	if !d.OK && !d.Never {
		return retrySeconds(d)
	}
	return ceilSeconds(d.ResetAfter)
}

// retrySeconds is what Retry-After says. When a slot comes free nobody knows;
// the lease, which is what the Decision knows, is only the longest it can take.
func retrySeconds(d *tidegate.Decision) int64 {
	if l := d.Limit; l != nil && l.Algorithm == tidegate.Concurrency {
		return 1
	}
	return max(1, ceilSeconds(d.RetryAfter))
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 0)
}

// epoch is the second in which the reset falls. It is reckoned from the store's
// time of the decision: our own clock, read a moment later, would now and again
// show the last instant of a window as the next second. A store whose time is
// not the wall clock's, as after a suspend, is not asked.
func (f form) epoch(d *tidegate.Decision, now time.Time) int64 {
	after := d.ResetAfter
	if f.dialect == Draft6 && !d.OK && !d.Never {
		after = d.RetryAfter
	}
	at := now.UnixNano()
	store := d.Receipt.At/1024*1000 + d.Receipt.At%1024*1000/1024 // nanoseconds, if it is Unix time
	if off := store - at; off > -int64(time.Second) && off < int64(time.Second) {
		at = store
	}
	return ceilSeconds(time.Duration(at) + after - clockSlack)
}

// clockSlack is how far past a full second still counts as that second: clocks
// of two machines do not agree to the nanosecond, most windows end on a second.
const clockSlack = 50 * time.Millisecond
