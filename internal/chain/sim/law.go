package sim

import (
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// law replays admissions of one key in the order of time. It is written anew here, in the
// simplest way and without the code that it judges.
type law interface {
	// admit returns by how many events an admission at a time, in ns since the Unix epoch, is
	// above the limit; up to 0 it is within.
	admit(at int64, cost float64) (over float64)
}

// newLaw returns the law of a limit with the largest numbers that any of the versions has. All have
// the algorithm and the period of the first.
func newLaw(versions []*tidegate.Limit) law {
	first := versions[0]
	var events, burst, pace float64
	for _, l := range versions {
		events, burst, pace = max(events, float64(l.Events)), max(burst, float64(l.Capacity())), max(pace, rate(l))
	}
	switch period := period(first).Nanoseconds(); first.Algorithm {
	case tidegate.TokenBucket:
		return &bucketLaw{burst: burst, rate: pace}
	case tidegate.LeakyBucket:
		return &turnLaw{rate: pace}
	case tidegate.SlidingLog:
		return &logLaw{events: events, period: period}
	case tidegate.SlidingWindow:
		return &partsLaw{events: events, part: period, parts: 1, counts: map[int64]float64{}}
	case tidegate.SubWindows:
		part := period / int64(first.Parts) / 1000 * 1000
		return &partsLaw{events: events, part: part, parts: int64(first.Parts), counts: map[int64]float64{}}
	case tidegate.Quota:
		return &calendarLaw{events: events, limit: first}
	default:
		return &windowLaw{events: events, period: period}
	}
}

// bucketLaw: in any stretch of time at most burst + rate × its length.
type bucketLaw struct {
	burst, rate float64
	level       float64
	last        int64
}

func (l *bucketLaw) admit(at int64, cost float64) float64 {
	l.level = max(0, l.level-l.rate*float64(at-l.last)/1e9) + cost
	l.last = at
	// A receipt is in whole ticks, of which the charge is rounded up to one.
	return l.level - l.burst - l.rate*2e-6 - 1e-3
}

// turnLaw: evenly spaced, as nobody who is simulated waits for a turn.
type turnLaw struct {
	rate  float64
	level float64
	last  int64
}

func (l *turnLaw) admit(at int64, cost float64) float64 {
	before := max(0, l.level-l.rate*float64(at-l.last)/1e9)
	l.level, l.last = before+cost, at
	return before - l.rate*2e-6 - 1e-3
}

// windowLaw: at most events in any window by the clock.
type windowLaw struct {
	events float64
	period int64
	window int64
	count  float64
}

func (l *windowLaw) admit(at int64, cost float64) float64 {
	if w := at / l.period; w != l.window {
		l.window, l.count = w, 0
	}
	l.count += cost
	return l.count - l.events
}

// calendarLaw: at most events in any day, week, month or year of the limit's zone.
type calendarLaw struct {
	events float64
	limit  *tidegate.Limit
	period [2]int
	count  float64
}

func (l *calendarLaw) admit(at int64, cost float64) float64 {
	if p := calendarPeriod(l.limit, time.Unix(0, at).In(l.limit.Location())); p != l.period {
		l.period, l.count = p, 0
	}
	l.count += cost
	return l.count - l.events
}

// calendarPeriod numbers the periods of a quota: the year, and which one of it.
func calendarPeriod(l *tidegate.Limit, t time.Time) [2]int {
	year, month, day := t.Date()
	switch l.Calendar {
	case tidegate.Day:
		return [2]int{year, t.YearDay()}
	case tidegate.Week:
		year, week := t.ISOWeek()
		return [2]int{year, week}
	case tidegate.Month:
		last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if day < min(l.Anchor, last) {
			year, month, _ = time.Date(year, month-1, 1, 0, 0, 0, 0, time.UTC).Date()
		}
		return [2]int{year, int(month)}
	default:
		if month == time.January && day < l.Anchor {
			year--
		}
		return [2]int{year, 0}
	}
}

// logLaw: at most events in any stretch of time that is as long as the period.
type logLaw struct {
	events float64
	period int64
	log    []admission
	costs  float64
}

func (l *logLaw) admit(at int64, cost float64) float64 {
	l.log = append(l.log, admission{at: at})
	l.costs += cost
	for at-l.log[0].at >= l.period-time.Microsecond.Nanoseconds() { // stamps are in µs
		l.log = l.log[1:]
		l.costs -= cost
	}
	return l.costs - l.events
}

// partsLaw: at most events in the last parts, the current one included, and in the share of the
// part before them that a sliding period still covers.
type partsLaw struct {
	events float64
	part   int64
	parts  int64
	counts map[int64]float64
}

func (l *partsLaw) admit(at int64, cost float64) float64 {
	now := at / l.part
	l.counts[now] += cost
	used := 0.0
	for i := range l.parts {
		used += l.counts[now-i]
	}
	left := 1 - float64(at%l.part)/float64(l.part)
	oldest := l.counts[now-l.parts]
	if len(l.counts) > int(2*l.parts)+8 {
		for p := range l.counts {
			if p < now-l.parts {
				delete(l.counts, p)
			}
		}
	}
	return used + math.Floor(max(0, oldest*left-1e-6)) - l.events
}
