package edits

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

const (
	period = time.Minute
	hour   = time.Hour
)

// version is what a rule file says: a limit for all and one for a tier, and sometimes one
// for an hour beside them.
type version struct {
	algorithm tidegate.Algorithm
	free, pro tier
	hourly    int64 // 0 means none
}

type tier struct {
	events, burst int64 // the same but for a bucket
	parts         int   // of a log that is counted in parts; 0 means in stamps
}

func (p *play) random() *version {
	v := &version{algorithm: p.among[p.rand.IntN(len(p.among))], free: p.tier(), pro: p.tier()}
	if p.rand.IntN(3) == 0 {
		v.hourly = 30 + p.rand.Int64N(100)
	}
	p.finish(v)
	return v
}

func (p *play) tier() tier {
	events := 1 + p.rand.Int64N(5+35*p.rand.Int64N(2))
	t := tier{events: events, burst: events}
	if p.rand.IntN(2) == 0 {
		t.burst = 1 + p.rand.Int64N(5+35*p.rand.Int64N(2))
	}
	return t
}

// finish takes away what the algorithm has not, and chooses a resolution.
func (p *play) finish(v *version) {
	for _, t := range []*tier{&v.free, &v.pro} {
		if v.algorithm != tidegate.TokenBucket {
			t.burst = t.events
		}
		t.parts = 0
		if v.algorithm == tidegate.SlidingLog {
			t.parts = []int{0, 0, 6, 12}[p.rand.IntN(4)]
		}
	}
}

// like is another version of the same numbers, or of one that is lower.
func (p *play) like(v *version) *version {
	other := *v
	other.algorithm = p.among[p.rand.IntN(len(p.among))]
	p.finish(&other)
	for _, t := range []struct{ is, was *tier }{{&other.free, &v.free}, {&other.pro, &v.pro}} {
		t.is.events = min(t.is.events, t.was.burst)
		t.is.burst = min(t.is.burst, t.is.events, t.was.burst)
	}
	return &other
}

// plain reports whether the version says the same in every algorithm.
func (v *version) plain() bool { return v.free.burst == v.free.events && v.pro.burst == v.pro.events }

// rounding returns how much longer used events may count in another resolution.
func (v *version) rounding(other *version) time.Duration {
	if v.algorithm == tidegate.SlidingLog || other.algorithm == tidegate.SlidingLog {
		return period / 6
	}
	return 0
}

func (t tier) text(a tidegate.Algorithm) string {
	switch {
	case a == tidegate.TokenBucket:
		return fmt.Sprintf("{ rate: %d/minute, burst: %d, algorithm: token_bucket }", t.events, t.burst)
	case t.parts > 0:
		return fmt.Sprintf("{ rate: %d/minute, algorithm: sub_windows, parts: %d, ceiling: true }", t.events, t.parts)
	}
	return fmt.Sprintf("{ rate: %d/minute, algorithm: %s }", t.events, a)
}

// file returns the rule file.
func (v *version) file(rule string) string {
	free, pro := v.free.text(v.algorithm), v.pro.text(v.algorithm)
	if v.hourly > 0 {
		more := fmt.Sprintf("{ rate: %d/hour, algorithm: %s }", v.hourly, v.algorithm)
		free, pro = "["+free+", "+more+"]", "["+more+", "+pro+"]"
	}
	return fmt.Sprintf(`version: 1
identify: { user: descriptor user, plan: descriptor plan }
rules:
  - name: %s
    per: user
    limits: %s
    for:
      - { when: { plan: pro }, limits: %s }
`, rule, free, pro)
}

func (v *version) String() string {
	return fmt.Sprintf("%s or %s, hourly %d", v.free.text(v.algorithm), v.pro.text(v.algorithm), v.hourly)
}
