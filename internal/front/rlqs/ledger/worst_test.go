package ledger_test

import (
	"slices"
	"time"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// sending is an assignment that was sent to a node.
type sending struct {
	at time.Duration
	ledger.Strategy
}

// life is the time in which a node may use a strategy.
type life struct {
	ledger.Strategy
	first, end time.Duration
}

func (l *life) perSecond() float64 { return float64(l.Fill) / l.Interval.Seconds() }

// lives are those of one node, by what it was sent and nothing else: an assignment may arrive at
// once or after Delivery, and may be lost.
func lives(sent []sending, t ledger.Times) (all []*life) {
	var last *life
	for _, s := range sent {
		extends := last != nil && last.Strategy == s.Strategy && s.at < last.end-t.Out()+t.TTL-t.Delivery
		switch {
		case s.Fill == 0:
			last = nil
		case extends:
			last.end = s.at + t.Out()
		default:
			last = &life{s.Strategy, s.at, s.at + t.Out()}
			all = append(all, last)
		}
	}
	return all
}

// worst returns by how much all nodes can exceed the limit at most, if they do as much as they can
// in some interval, whichever assignments arrive when.
func worst(nodes map[ledger.Node][]sending, l ledger.Limit, t ledger.Times) float64 {
	perSecond := float64(l.Events) / l.Period.Seconds()
	var all []*life
	var times []time.Duration
	rates := make(map[time.Duration]float64) // changes of the sum of all nodes
	for _, sent := range nodes {
		own := lives(sent, t)
		all = append(all, own...)
		var at []time.Duration
		for _, x := range own {
			at = append(at, x.first, x.end)
		}
		slices.Sort(at)
		at = slices.Compact(at)
		times = append(times, at...)
		was := 0.0
		for _, now := range at {
			is := 0.0 // a node has one at a time
			for _, x := range own {
				if x.first <= now && now < x.end {
					is = max(is, x.perSecond())
				}
			}
			rates[now] += is - was
			was = is
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	// room[i] is what can be admitted until times[i], less what the rate allows.
	room := make([]float64, len(times))
	sum, rate := 0.0, 0.0
	for i, now := range times {
		if i > 0 {
			sum += (rate - perSecond) * (now - times[i-1]).Seconds()
		}
		rate += rates[now]
		for _, x := range all {
			if x.first == now {
				sum += float64(x.Max)
			}
		}
		room[i] = sum
	}
	most, after := 0.0, 0.0
	for i := len(times) - 1; i >= 0; i-- { // an interval that begins at times[i]
		if i == len(times)-1 || room[i] > after {
			after = room[i]
		}
		alive := 0.0
		for _, x := range all {
			if x.first <= times[i] && x.end >= times[i] {
				alive += float64(x.Max)
			}
		}
		most = max(most, alive+after-room[i]-float64(l.Burst))
	}
	return most
}
