package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"tidegate.dev/tidegate"
)

// Dialect is how a response tells its client where it stands. Dialects can be
// combined, as in Draft11 | X; the zero value is Draft11. A dialect that has a number
// stays as that draft was.
//
// All of them report the Decision that decided this request and round times up to whole
// seconds. A request that nothing limits, that an access rule refused or that the
// fail mode decided gets no such headers: there are no numbers to report.
//
// A rule may have a ceiling above the limit that clients are told: the headers then
// show the limit, and an admitted request above it gets X-RateLimit-Soft: true.
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
	Draft11 Dialect = 1 << iota
	// Draft6 is draft 6 of the same: RateLimit-Limit, RateLimit-Remaining,
	// RateLimit-Reset, and RateLimit-Policy as in "100;w=60". Reset is, for a
	// refused request, the same as Retry-After. Beside Draft11 it has no
	// RateLimit-Policy, which it may leave out: the two write it differently.
	Draft6
	// X is X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset and, for
	// refused requests, X-RateLimit-Retry-After. Limit is what Remaining starts
	// from; Reset is always when the limit is as good as new.
	X
	// NoHeaders tells nothing but the Retry-After of a refusal. It cannot be combined.
	NoHeaders
)

// valid reports whether d is a combination of dialects that can be sent together.
func (d Dialect) valid() bool {
	return d == NoHeaders || d > 0 && d <= Draft11|Draft6|X
}

// Reset is how the dialects X and Draft6 write a time. The t of Draft11 and
// Retry-After are always relative.
type Reset uint8

const (
	// ResetDelta is the number of seconds until then: clocks need not agree.
	ResetDelta Reset = iota
	// ResetEpoch is Unix time in seconds; all responses about one window name
	// the same second, unless Options.RetryJitter spreads those of refusals.
	ResetEpoch
)

// headerStyle says how the headers of one response are written.
type headerStyle struct {
	dialect Dialect
	reset   Reset
}

// setLimitHeaders sets the response headers that describe the limit, in the dialect of o or
// of p. It sets none if the limit is unknown or silent, or if the store failed.
func (o *Options) setLimitHeaders(h http.Header, d *tidegate.Decision, p *policy, known *policies) {
	if p == nil || p.silent || d.Err != nil {
		return
	}
	f := p.style(headerStyle{o.Headers, o.Reset})
	switch f.dialect {
	case NoHeaders:
		return
	case Draft11, 0:
		draft11(h, d, p, known)
	default:
		f.combined(h, d, p, known)
	}
	if d.Soft {
		h["X-Ratelimit-Soft"] = []string{"true"}
	}
}

// draft11 sets the headers of draft 11. It runs for every admitted request: one
// allocation, or two if the value is not in the cache.
func draft11(h http.Header, d *tidegate.Decision, p *policy, known *policies) {
	values := known.cache.values(p, p.left(d), p.reset(d), known.list11(p))
	if len(h) > 0 && len(h["Ratelimit"]) > 0 { // an outer limit's
		addDraft11(h, values[0], values[1])
		return
	}
	h["Ratelimit"] = values[0:1:1]
	h["Ratelimit-Policy"] = values[1:2:2]
}

// addDraft11 adds the entries of an inner limit.
func addDraft11(h http.Header, item, policy string) {
	h["Ratelimit"] = append(h["Ratelimit"], item)
	h["Ratelimit-Policy"] = append(h["Ratelimit-Policy"], policy)
}

// fields are the values of a response, in one array.
type fields struct {
	header http.Header
	values []string
}

// mostFields is how many fields all dialects have together.
const mostFields = 9

func (f *fields) set(name, value string) {
	n := len(f.values)
	f.values = append(f.values, value)
	f.header[name] = f.values[n : n+1 : n+1]
}

// combined sets the headers of one or several dialects. It allocates once, as draft11
// does, unless it has to format a time.
func (f headerStyle) combined(h http.Header, d *tidegate.Decision, p *policy, known *policies) {
	cached := known.cache.find(p, p.left(d), p.reset(d))
	out := fields{h, make([]string, 0, mostFields)}
	switch {
	case f.dialect&Draft11 == 0:
	case len(h["Ratelimit"]) > 0: // an outer limit's
		addDraft11(h, cached.text, known.list11(p))
	default:
		out.set("Ratelimit", cached.text)
		out.set("Ratelimit-Policy", known.list11(p))
	}
	if f.dialect&Draft6 != 0 {
		out.set("Ratelimit-Limit", p.capacity)
		out.set("Ratelimit-Remaining", cached.left())
		if !p.slots { // nobody can tell when a slot is given back
			out.set("Ratelimit-Reset", f.at(cached, d, resetAfter(d)))
		}
		if list := known.list6(p); list != "" && f.dialect&Draft11 == 0 {
			out.set("Ratelimit-Policy", list)
		}
	}
	if f.dialect&X != 0 {
		out.set("X-Ratelimit-Limit", p.capacity)
		out.set("X-Ratelimit-Remaining", cached.left())
		if !p.slots {
			out.set("X-Ratelimit-Reset", f.at(cached, d, d.ResetAfter))
		}
		if !d.OK && !d.Never {
			out.set("X-Ratelimit-Retry-After", cached.number(retrySeconds(d)))
		}
	}
}

// at formats the instant of the decision plus after, as the style asks: as seconds from the decision or
// as Unix time.
func (f headerStyle) at(cached *cachedValue, d *tidegate.Decision, after time.Duration) string {
	if f.reset == ResetEpoch {
		return strconv.FormatInt(epoch(d, after, time.Now()), 10)
	}
	return cached.number(ceilSeconds(after))
}

// resetAfter returns the reset of the IETF dialects, in which Retry-After should not
// be earlier than the reset.
func resetAfter(d *tidegate.Decision) time.Duration {
	if !d.OK && !d.Never {
		return max(d.RetryAfter, 1) // Retry-After is never 0
	}
	return d.ResetAfter
}

// reset returns resetAfter in seconds, rounded as for Retry-After; slots have none.
func (p *policy) reset(d *tidegate.Decision) int64 {
	switch {
	case p.slots:
		return 0
	case !d.OK && !d.Never:
		return retrySeconds(d)
	}
	return ceilSeconds(d.ResetAfter)
}

// retrySeconds returns the value of Retry-After.
func retrySeconds(d *tidegate.Decision) int64 { return max(1, ceilSeconds(retryAfter(d))) }

// retryAfter returns after how long to try again after a refusal. It is not known when a slot
// comes free: the RetryAfter of the Decision is the lease, the longest that it can take.
func retryAfter(d *tidegate.Decision) time.Duration {
	if l := d.Limit; l != nil && l.Algorithm == tidegate.Concurrency {
		return time.Second
	}
	return max(d.RetryAfter, time.Millisecond)
}

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 0)
}

// epoch returns the instant of the decision plus after, as Unix time in seconds. It counts from
// the store's time of the decision: the clock of this process, read a moment later, would
// sometimes show the last instant of a window as the next second. The store's time is not used
// if it differs from the wall clock, as after a suspend.
func epoch(d *tidegate.Decision, after time.Duration, now time.Time) int64 {
	at := now.UnixNano()
	store := d.Receipt.At/1024*1000 + d.Receipt.At%1024*1000/1024 // nanoseconds, if it is Unix time
	if off := store - at; off > -int64(time.Second) && off < int64(time.Second) {
		at = store
	}
	return ceilSeconds(later(time.Duration(at)-clockSlack, after))
}

// clockSlack is how far past a full second still counts as that second: most windows
// end on a full second, and the clocks of two machines differ a little.
const clockSlack = 50 * time.Millisecond
