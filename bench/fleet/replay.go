package main

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// replayed is what the merged log of all instances says.
type replayed struct {
	asked, admitted int64
	nonconforming   int64 // admissions that an exact bucket would not have admitted
	worst           int64 // by how many events it was over
	byOrigin        [8]int64
	use             float64 // of burst + rate × time
}

// span is a stretch of time.
type span struct{ from, to time.Time }

func (s span) has(at int64) bool {
	return !s.from.IsZero() && at >= s.from.UnixNano() && at < s.to.UnixNano()
}

// replay puts the log through an exact bucket that shares no code with the real ones. An
// admission that does not conform is counted and takes nothing, so that one is not counted
// for many. What was admitted in the outage, if there is one, is not judged, and the bucket
// starts full after it.
func replay(all []outcome, outage span) (v replayed) {
	slices.SortFunc(all, func(a, b outcome) int { return int(a.at - b.at) })
	const emission, burst = int64(time.Second / events), int64(time.Second) // of events at that pace
	var drained, first, last int64
	for _, o := range all {
		v.asked++
		if !o.ok {
			continue
		}
		v.admitted++
		v.byOrigin[o.origin&7]++
		if last = o.at; first == 0 {
			first = o.at
		}
		if outage.has(o.at) {
			drained = 0
			continue
		}
		if after := max(drained, o.at) + emission; after-o.at > burst {
			v.nonconforming++
			v.worst = max(v.worst, (after-o.at-burst+emission-1)/emission)
		} else {
			drained = after
		}
	}
	v.use = float64(v.admitted) / (events + events*time.Duration(last-first).Seconds())
	return v
}

func (v *replayed) local() int64 { return v.byOrigin[tidegate.OriginLocal] }
