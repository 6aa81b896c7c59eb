package client

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
)

// A stop is a bucket with room for one event, whose debt is the time to wait. It has no room until
// an instant, for every instance that asks, and no call passes before that.

// maxStop is the longest possible stop, stopUnit the shortest; half of stopUnit is the shortest
// period.
const (
	maxStop  = 7 * 24 * time.Hour
	stopUnit = 2 * tidegate.MinPeriod
)

func stopLimit(name string, period time.Duration, terms *tidegate.Terms) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: name, Scope: "client", Algorithm: tidegate.TokenBucket, RawTime: true,
		Events: 1, Burst: 1, Period: period, Terms: terms,
	})
}

// stopCheck is the limit that calls are checked against. A store that does not answer stops nobody.
var stopCheck = stopLimit("stop", maxStop, stopTerms)

// strictCheck is like a stop, but holds no call back: while it lasts, all instances are strict
// about turns, even those that made no call during the stop itself.
var strictCheck = stopLimit("strict", maxStop, stopTerms)

var stopTerms = &tidegate.Terms{
	Rule: "stop", Role: tidegate.Blocks, Handling: tidegate.Handling{Final: true, OnStoreFailure: tidegate.FailOpen},
}

// stopFor makes all instances wait for d, or until the end of the current stop if that is later.
// Adjust overdraws a bucket by at most one capacity, so two events of d/2 fill it up to d and no
// further, however many instances charge it at once.
func (p *Provider) stopFor(ctx context.Context, counter string, d time.Duration) error {
	return p.store.Adjust(context.WithoutCancel(ctx), tidegate.Receipt{}, []tidegate.Check{
		{Key: counter, Limit: stopLimit("stop", d/2, nil), Cost: 2},
		{Key: counter, Limit: stopLimit("strict", (d+strictFor)/2, nil), Cost: 2},
	})
}

// stopIfAsked stops all instances if a response names a time.
func (p *Provider) stopIfAsked(req *http.Request, res *http.Response) {
	now := time.Now()
	r, refused := refusalOf(res, quotas(res.Header, now), now)
	if !refused || r.final {
		return
	}
	p.turns.refused(now, r.after)
	if !r.named {
		return
	}
	d := min(r.after, cmp.Or(p.o.MaxStop, DefaultMaxStop))
	d = (d + stopUnit - 1).Truncate(stopUnit) // rounded up
	err := p.stopFor(req.Context(), p.counter(req), d)
	p.tell(req, Event{Kind: Stopped, Status: res.StatusCode, Wait: d, Err: err})
}

// stopped returns how long calls have to wait for the end of a stop, and warns turns if other
// instances are strict.
func (p *Provider) stopped(ctx context.Context, counter string) time.Duration {
	checks := []tidegate.Check{{Key: counter, Limit: stopCheck}, {Key: counter, Limit: strictCheck, Advisory: true}}
	d, err := p.store.Take(ctx, checks, 1)
	if err == nil && checks[1].Over {
		p.turns.warned(time.Now())
	}
	if err != nil || d.OK {
		return 0
	}
	return d.RetryAfter
}
