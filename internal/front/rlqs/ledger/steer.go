package ledger

import "time"

// Instances of a fleet do not know each other's demand, and all see how full the shared bucket is. Each
// hands out a part of the rate, its scale. When the bucket runs low, it lowers that before extensions
// cannot be paid; when the bucket is nearly full, it raises it. What falls or rises by itself is left
// alone: every change costs full buckets, and what was paid for a higher rate is lost.

// fleetScale is the part of the rate that a ledger hands out.
type fleetScale struct {
	part    float64       // 0 to maxPart
	level   float64       // how full the bucket is above its floor, 0 to 1, smoothed
	was     float64       // the level at the last step
	seen    float64       // the last level that was seen; -1 means none since level was updated
	at      time.Duration // when level was last updated
	stepped time.Duration // when the last step was: part was considered, and perhaps changed
	short   bool          // an extension could not be paid since then
	before  float64       // the part from before the shared bucket was away; 0 means it answers
}

// Levels at which the scale is lowered and raised; above the middle one, it is raised if the level rises
// quickly.
const (
	lowLevel    = 0.3
	middleLevel = 0.4
	highLevel   = 0.7
)

// maxPart is above 1, so that nodes that have nearly their target get the rest. All together never have
// more than the rate.
const maxPart = 1.1

// take pays and notes how full the bucket is. While it is away, what cannot be paid from the share of this
// instance lowers the scale, which says nothing about the time after that.
func (l *Ledger) take(pay Pay, tokens, spare int64) bool {
	left, enough := pay(tokens, spare)
	s := &l.scale
	switch {
	case left == Away && s.before == 0:
		s.before = s.part
	case left >= 0:
		s.seen = min(float64(left)/float64(l.ahead.span), 1)
		if s.before > 0 {
			s.part, s.before = max(s.part, s.before), 0
			s.level, s.was = s.seen, s.seen
		}
	}
	return enough
}

// steer changes the part of the rate that is handed out, once in the time that it takes to see what
// the last change has done. short means that an extension could not be paid.
func (l *Ledger) steer(now time.Duration, all []*aim, short bool) {
	s := &l.scale
	if l.ahead == nil {
		return
	}
	out := l.times.Out()
	if s.seen >= 0 {
		passed := (now - s.at).Seconds()
		s.level += (s.seen - s.level) * passed / (passed + l.times.Renewal().Seconds())
		s.seen, s.at = -1, now
	}
	s.short = s.short || short
	if now-s.stepped < out {
		return
	}
	has := 0.0 // the part that nodes have
	for _, a := range all {
		has += float64(a.now.Fill) / float64(max(l.fill, 1))
	}
	rises := s.level > s.was
	surplus := (s.level - s.was) * float64(l.ahead.span) / (l.limit.perSecond() * (now - s.stepped).Seconds())
	switch {
	case s.short:
		s.lower(3.0/4, has)
	case s.level < lowLevel && !rises:
		s.lower(15.0/16, has)
	case s.level > middleLevel && surplus > 1.0/16: // somebody has gone
		s.part = min(s.part*(1+surplus), maxPart)
	case s.level > highLevel && s.level >= s.was-0.02:
		s.part = min(s.part+(1+3*(s.level-highLevel)/(1-highLevel))/32, maxPart)
	}
	s.was, s.stepped, s.short = s.level, now, false
}

// lower lowers the scale. One that is far above what nodes have is lowered to that soon, and none is
// lowered to far less: the smallest buckets cost what they cost.
func (s *fleetScale) lower(by, has float64) {
	if s.part*3/4 > has {
		by = 3.0 / 4
	}
	s.part = max(s.part*by, min(s.part, has*3/4), 1.0/grains)
}
