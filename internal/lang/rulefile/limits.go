package rulefile

import (
	"fmt"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const limitsHint = "write `limits: 100/minute`, a list of such, or `limits: unlimited`"

// limits reads the limits of a rule, a branch or a tier; nil if it has none.
func (d *decoder) limits(o object, sc scope) *Limits {
	n := o.get("limits")
	if n == nil {
		return nil
	}
	if isTable(n) {
		return d.table(n, o.pos("limits"), sc)
	}
	return d.limitsOf(n, o.pos("limits"))
}

// limitsOf reads limits without a table.
func (d *decoder) limitsOf(n *yamltree.Node, pos diag.Pos) *Limits {
	l := &Limits{Pos: pos}
	if n.Kind == yamltree.Scalar && n.Value == "unlimited" {
		l.Unlimited = true
		return l
	}
	for _, item := range d.oneOrMore(n, "`limits`", limitsHint) {
		if item.Kind == yamltree.Scalar && item.Value == "unlimited" {
			d.fail(item.Pos, "`unlimited` cannot be one of several limits", "write `limits: unlimited` alone, or remove it")
			continue
		}
		if isTable(item) {
			d.fail(item.Pos, "a table has all limits of a rule, and cannot be one of several", "write a list in each row: `rows: { large: [100/minute, 1000/hour] }`")
			continue
		}
		if limit, ok := d.limit(item); ok {
			l.All = append(l.All, limit)
		}
	}
	return l
}

// limit reads one limit, in any of its three forms.
func (d *decoder) limit(n *yamltree.Node) (Limit, bool) {
	switch n.Kind {
	case yamltree.Scalar:
		return d.plainLimit(n)
	case yamltree.Map:
		o, _ := d.open(n, &limitsPlace)
		if o.has("from") {
			return d.limitFrom(o)
		}
		return d.fullLimit(o)
	}
	d.fail(n.Pos, "a limit is a rate, and this is "+n.What(), limitsHint)
	return Limit{}, false
}

// plainLimit reads a limit that is only a rate, as in 100/minute.
func (d *decoder) plainLimit(n *yamltree.Node) (Limit, bool) {
	l := Limit{Pos: n.Pos, Text: strings.TrimSpace(n.Value)}
	if !looksLikeRate(l.Text) && (diag.Nearest(l.Text, []string{"unlimited"}) != "" || l.Text == "none" || l.Text == "off") {
		d.fail(n.Pos, diag.Quote(l.Text)+" is not a valid rate", "did you mean `unlimited`?")
		return l, false
	}
	events, unit, ok := d.rate(n, "a limit", "100/minute")
	if !ok {
		return l, false
	}
	period, ok := d.period(n.Pos, unit, l.Text)
	if !ok {
		return l, false
	}
	l.Spec = tidegate.Spec{Events: events, Period: period}
	return l, d.slowEnough(l.Pos, l.Text, events, period)
}

// looksLikeRate reports whether text is a number per unit, as nearly all limits are. Such text need
// not be compared with words.
func looksLikeRate(text string) bool {
	count, unit, ok := strings.Cut(text, "/")
	_, known := units[unit]
	return ok && known && allDigits(count)
}

// slowEnough returns false for a rate that is too high for any store to count per key, and reports
// that.
func (d *decoder) slowEnough(pos diag.Pos, text string, events int64, period time.Duration) bool {
	if events*int64(time.Second)/tidegate.MaxPerSecond <= int64(period) {
		return true
	}
	d.fail(pos, fmt.Sprintf("%s is more than %d a second for one key", diag.Quote(text), tidegate.MaxPerSecond),
		"count in larger units, such as kilobytes instead of bytes: `cost: { reserve: body.kilobytes, else: 1 }`")
	return false
}

// fullLimit reads a limit that is a map with `rate`.
func (d *decoder) fullLimit(o object) (Limit, bool) {
	ok := true
	for _, word := range []string{"per", "max", "else"} {
		if o.has(word) {
			d.fail(o.key(word), diag.Quote(word)+" needs `from`, which is missing", "write `limits: { from: jwt.rpm, per: minute, max: 10000, else: 100 }`, or remove it")
			ok = false
		}
	}
	n := d.need(o, "rate", "a limit", "write `rate: 100/minute`")
	if n == nil {
		return Limit{}, false
	}
	l, fine := d.plainLimit(n)
	if !fine || !d.algorithm(o, &l.Spec) {
		return l, false
	}
	if o.has("burst") {
		l.burstPos = o.key("burst")
		ok = d.burst(o, &l.Spec) && ok
	}
	ok = d.details(o, &l.Spec) && ok
	return l, d.refill(o, &l.Spec) && ok
}

// algorithms are the algorithms of limits, in the order in which hints list them.
var algorithms = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"}

// algorithm sets the algorithm that o names, if any. Without one, `refill` means a token bucket.
func (d *decoder) algorithm(o object, s *tidegate.Spec) bool {
	n := o.get("algorithm")
	if n == nil {
		if o.has("refill") {
			s.Algorithm = tidegate.TokenBucket // the only algorithm with a refill
		}
		return !o.has("algorithm")
	}
	switch n.Value {
	case "quota", "concurrency":
		d.fail(n.Pos, diag.Quote(n.Value)+" is not an algorithm but a field of the rule", "write `quota: { amount: 1000/month }` or `concurrency: { slots: 20, lease: 30s }` beside `limits`")
		return false
	case "gcra":
		d.fail(n.Pos, "`algorithm` cannot be `gcra`", "write `token_bucket`, which is counted that way")
		return false
	}
	text, ok := d.oneOf(n, "`algorithm`", algorithms...)
	if !ok {
		return false
	}
	var err error
	s.Algorithm, err = tidegate.ParseAlgorithm(text)
	return err == nil
}

const (
	burstAlone = "only a token bucket has a burst, and `algorithm` is not set"
	burstHint  = "add `algorithm: token_bucket`, or remove `burst`"
)

func (d *decoder) burst(o object, s *tidegate.Spec) bool {
	switch s.Algorithm {
	case tidegate.TokenBucket:
	case tidegate.LeakyBucket:
		d.fail(o.key("burst"), "the burst of a leaky bucket is its queue", "write `queue: { places: 100, max_wait: 2s }` in the rule instead")
		return false
	case tidegate.Auto:
		if !d.mayBucket { // otherwise checkLimit reports it
			d.fail(o.key("burst"), burstAlone, burstHint)
			return false
		}
	default:
		d.fail(o.key("burst"), "`burst` means nothing to "+s.Algorithm.String(), "write `algorithm: token_bucket`, or remove `burst`")
		return false
	}
	n := o.get("burst")
	if n == nil {
		return false
	}
	v, ok := d.whole(n, "`burst`", 1, tidegate.MaxCount, "burst: 200")
	s.Burst = v
	return ok
}

// refill reads how a bucket is refilled, if o says so. The only way is to get all events at once, at
// the start of each period, which is a fixed window, and s becomes one.
func (d *decoder) refill(o object, s *tidegate.Spec) bool {
	if !o.has("refill") {
		return true
	}
	n := o.get("refill")
	if n == nil {
		return false
	}
	if _, ok := d.oneOf(n, "`refill`", "at_once"); !ok {
		return false
	}
	if s.Algorithm != tidegate.TokenBucket {
		d.fail(o.key("refill"), "`refill` means nothing to "+s.Algorithm.String(), "write `algorithm: token_bucket`, or take `refill` out")
		return false
	}
	if s.Burst != 0 && s.Burst != s.Events {
		d.fail(o.key("burst"), "a bucket that is refilled at once holds what `rate` says, no more and no less", "take `burst` out, or `refill`")
		return false
	}
	s.Algorithm, s.Burst = tidegate.FixedWindow, 0
	return true
}

// details reads the fields that only some algorithms have: parts, ceiling and count_rejected. The
// first two make a limit that names no algorithm one of sub-windows.
func (d *decoder) details(o object, s *tidegate.Spec) bool {
	ok := true
	for _, word := range []string{"parts", "ceiling"} {
		if o.has(word) && s.Algorithm == tidegate.Auto {
			s.Algorithm = tidegate.SubWindows // which has both
		}
		two := word == "ceiling" && s.Algorithm == tidegate.SlidingWindow
		if o.has(word) && s.Algorithm != tidegate.SubWindows && !two {
			d.fail(o.key(word), diag.Quote(word)+" means nothing to "+s.Algorithm.String(), "write `algorithm: sub_windows`, or take "+diag.Quote(word)+" out")
			ok = false
		}
	}
	if o.has("count_rejected") && s.Algorithm != tidegate.SlidingLog {
		why := "`count_rejected` means nothing to " + s.Algorithm.String()
		if s.Algorithm == tidegate.Auto {
			why = "only a sliding log counts what it refused, and `algorithm` is not set"
		}
		d.fail(o.key("count_rejected"), why, "write `algorithm: sliding_log`, or take `count_rejected` out")
		return false
	}
	if n := o.get("parts"); n != nil && ok {
		v, fine := d.whole(n, "`parts`", 1, tidegate.MaxParts, "parts: 60")
		s.Parts, ok = int(v), fine
	}
	if n := o.get("ceiling"); n != nil && ok {
		s.Ceiling = d.yes(n, "`ceiling`")
	}
	if n := o.get("count_rejected"); n != nil {
		s.CountRejected = d.yes(n, "`count_rejected`")
	}
	return ok
}
