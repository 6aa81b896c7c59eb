package httplimit

import (
	"math"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// MostRetryJitter is the most that RetryJitter adds, whatever the window: an hour is enough
// to spread any number of clients.
const MostRetryJitter = time.Hour

// alignedWindow returns the length of the window of l if it ends for all clients at the same
// time; otherwise 0.
func alignedWindow(l *tidegate.Limit) time.Duration {
	const day = 24 * time.Hour
	switch l.Algorithm {
	case tidegate.FixedWindow:
		return l.Period
	case tidegate.Quota:
		switch l.Calendar {
		case tidegate.Day:
			return day
		case tidegate.Week:
			return 7 * day
		case tidegate.Month:
			return 28 * day // the shortest
		}
		return 365 * day
	}
	return 0
}

// told returns a refusal as the client is told of it: RetryJitter moves all its times by the
// same amount. d itself stays exact.
func (o *Options) told(d *tidegate.Decision, p *policy) tidegate.Decision {
	late := *d
	if p == nil || p.window == 0 || d.Never || d.Err != nil {
		return late
	}
	share := p.jitter
	if share == 0 {
		share = o.RetryJitter
	}
	if share = min(share, 1); !(share > 0) {
		return late
	}
	most := min(float64(p.window)*share, float64(MostRetryJitter))
	by := time.Duration(rand.Float64() * most)
	late.RetryAfter, late.ResetAfter = later(d.RetryAfter, by), later(d.ResetAfter, by)
	return late
}

// later returns d plus by, which is not negative, without overflow.
func later(d, by time.Duration) time.Duration {
	if d > math.MaxInt64-by {
		return math.MaxInt64
	}
	return d + by
}
