package edits

import (
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// wideVersion is what a rule says.
type wideVersion struct {
	free, pro wideTier
	cost      int64
	over      string // "", soft or elastic
	aside     int    // percent
	hourly    *wideTier
	quota     int64 // a day
}

type wideTier struct {
	algorithm     tidegate.Algorithm
	events, burst int64
	parts         int
	period        time.Duration
}

func (w *wide) tier(periods ...time.Duration) wideTier {
	r := w.rand
	t := wideTier{
		algorithm: pick(r, tidegate.TokenBucket, tidegate.TokenBucket, tidegate.SlidingLog, tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow),
		events:    4 + r.Int64N(5+35*r.Int64N(2)), period: pick(r, periods...),
	}
	t.burst = t.events
	switch t.algorithm {
	case tidegate.TokenBucket:
		t.burst = 4 + r.Int64N(5+35*r.Int64N(2))
	case tidegate.SubWindows:
		t.parts = pick(r, 6, 12)
	}
	return t
}

func (w *wide) random() *wideVersion {
	r := w.rand
	v := &wideVersion{free: w.tier(30*time.Second, time.Minute, time.Minute, 2*time.Minute), cost: pick[int64](r, 1, 1, 2, 3)}
	v.pro = v.free
	if r.IntN(2) == 0 {
		v.pro = w.tier(v.free.period)
		v.pro.algorithm, v.pro.parts = v.free.algorithm, v.free.parts
		if v.pro.algorithm != tidegate.TokenBucket {
			v.pro.burst = v.pro.events
		}
	}
	v.over = pick(r, "", "", "", "soft", "elastic")
	if r.IntN(4) == 0 {
		v.aside = pick(r, 10, 25, 50)
	}
	if r.IntN(4) == 0 {
		h := w.tier(time.Hour)
		h.events += 20
		h.burst = h.events
		v.hourly = &h
	}
	if r.IntN(4) == 0 {
		v.quota = 60 + r.Int64N(100)
	}
	return v
}

func (t wideTier) text() string {
	text := fmt.Sprintf("{ rate: %d/%s, algorithm: %s", t.events, t.period, t.algorithm)
	if t.algorithm == tidegate.TokenBucket {
		text += fmt.Sprintf(", burst: %d", t.burst)
	}
	if t.parts > 0 {
		text += fmt.Sprintf(", parts: %d, ceiling: true", t.parts)
	}
	return text + " }"
}

func (v *wideVersion) limits(t wideTier) string {
	if v.hourly != nil {
		return "[" + t.text() + ", " + v.hourly.text() + "]"
	}
	return t.text()
}

func (v *wideVersion) file(rule string) string {
	var more strings.Builder
	switch v.over {
	case "soft":
		more.WriteString("    over: { soft: 50% }\n")
	case "elastic":
		more.WriteString("    over: { elastic: { while: cpu < 80%, up_to: 2x } }\n")
	}
	if v.aside > 0 {
		fmt.Fprintf(&more, "    set_aside: { high: %d%% }\n", v.aside)
	}
	if v.quota > 0 {
		fmt.Fprintf(&more, "    quota: { amount: %d/day }\n", v.quota)
	}
	return fmt.Sprintf(`version: 1
identify: { user: descriptor user, plan: descriptor plan }
classes: [{ name: high, match: /high }, { name: rest }]
rules:
  - name: %s
    per: user
    limits: %s
    cost: %d
%s    for:
      - { when: { plan: pro }, limits: %s }
`, rule, v.limits(v.free), v.cost, more.String(), v.limits(v.pro))
}

func (v *wideVersion) String() string {
	return strings.Join(strings.Fields(v.file("")[strings.Index(v.file(""), "limits"):]), " ")
}

// ceiling is what is decided by.
func (v *wideVersion) ceiling(n int64) int64 {
	switch v.over {
	case "soft":
		return (n*150 + 99) / 100
	case "elastic":
		return 2 * n
	}
	return n
}

// vary changes a version in one way or in all.
func (w *wide) vary(v *wideVersion) *wideVersion {
	other, next := w.random(), *v
	switch w.rand.IntN(8) {
	case 0:
		next.over = other.over
	case 1:
		next.aside = other.aside
	case 2:
		next.cost = other.cost
	case 3:
		next.hourly = other.hourly
	case 4:
		next.quota = other.quota
	case 5:
		next.free, next.pro = other.free, other.pro
	default:
		return other
	}
	if min(next.free.events, next.free.burst, next.pro.events, next.pro.burst) < next.cost {
		return other
	}
	return &next
}

// like is another version with the same limits or lower ones, which counts elsewhere.
func (w *wide) like(v *wideVersion) *wideVersion {
	other, next := w.random(), *v
	next.over = ""
	if v.over == "soft" && w.rand.IntN(2) == 0 {
		next.over = "soft"
	}
	for _, t := range []struct{ is, by, was *wideTier }{{&next.free, &other.free, &v.free}, {&next.pro, &other.pro, &v.pro}} {
		*t.is = *t.by
		t.is.algorithm, t.is.parts, t.is.period = other.free.algorithm, other.free.parts, other.free.period
		// No quicker, and no larger.
		t.is.events = max(v.cost, min(t.was.burst, t.was.events*int64(t.is.period)/int64(t.was.period)))
		t.is.burst = min(t.is.events, t.was.burst)
		if t.is.events < v.cost || t.is.events*int64(t.was.period) > t.was.events*int64(t.is.period) || t.is.burst > t.was.burst {
			return v // a lower one would not fit the cost
		}
	}
	return &next
}
