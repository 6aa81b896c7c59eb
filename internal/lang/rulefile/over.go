package rulefile

import (
	"math"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

const overHint = "write `over: { soft: 10% }`, `over: { soft: 10%, max_time: 30s }`, `over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } }` or `over: hard`"

// over reads what happens above the limit; nil if it is not set.
func (d *decoder) over(o object) *Over {
	n := o.get("over")
	if n == nil {
		return nil
	}
	v := &Over{Pos: o.pos("over")}
	if n.Kind == yamltree.Scalar {
		if n.Value != "hard" {
			d.fail(n.Pos, "`over` cannot be "+diag.Quote(n.Value), overHint)
		}
		return v
	}
	in, ok := d.open(n, &overPlace)
	if !ok {
		return v
	}
	if in.has("max_time") && !in.has("soft") {
		d.fail(in.key("max_time"), "`max_time` is for how long a limit is soft, and `soft` is missing", "write `over: { soft: 10%, max_time: 30s }`")
	} else if n := in.get("max_time"); n != nil {
		v.MaxTime = d.maxTime(n)
	}
	switch {
	case in.has("soft") && in.has("elastic"):
		d.fail(in.key("elastic"), "a limit is either soft or elastic", "take one of the two out")
	case in.get("soft") != nil:
		v.Soft = d.soft(in.get("soft"))
	case in.get("elastic") != nil:
		v.Elastic = d.elastic(in.get("elastic"))
	case !in.has("soft") && !in.has("elastic") && !in.has("max_time"):
		d.fail(in.at, "`over` is empty", overHint)
	}
	return v
}

func (d *decoder) soft(n *yamltree.Node) int {
	hundredths, ok := d.percent(n, "`soft`", "soft: 10%")
	if ok && (hundredths < 100 || hundredths%100 != 0 || hundredths > 1000*100) {
		d.fail(n.Pos, "`soft` is "+n.Value+", and must be a whole percentage from 1% to 1000%", "write `soft: 10%`")
		return 0
	}
	return hundredths / 100
}

func (d *decoder) maxTime(n *yamltree.Node) time.Duration {
	v, ok := d.duration(n, "`max_time`", tidegate.MaxPeriod, "30s")
	if ok && (v < tidegate.MinMaxOver || v > tidegate.MaxMaxOver) {
		d.fail(n.Pos, "`max_time` is "+n.Value+", and must be from 1s to 24h", "write `max_time: 30s`")
		return 0
	}
	return v
}

// checkMaxTime reports max_time in t where a Gate cannot enforce it, as it looks at one counter
// before each request: with a queue, and if the limits of r are not strict.
func (d *decoder) checkMaxTime(r *Rule, t Terms) {
	if t.Over == nil || t.Over.MaxTime == 0 {
		return
	}
	if t.Queue != nil {
		d.fail(t.Over.Pos, "`max_time` cannot be used with `queue`: a request above the limit would either pass or wait", "take one of the two out")
	}
	if c := r.Shares(); c != tidegate.Strict {
		d.fail(t.Over.Pos, "`max_time` cannot be used with `consistency: "+c.String()+"`: it is about one counter for all instances",
			"write `consistency: strict` in this rule, or take `max_time` out")
	}
}

func (d *decoder) elastic(n *yamltree.Node) *Elastic {
	in, ok := d.open(n, &elasticPlace)
	if !ok {
		return nil
	}
	hint := "write " + diag.Quote(elasticPlace.example)
	var e Elastic
	if n := d.need(in, "while", "`elastic`", hint); n != nil {
		d.while(n, &e)
	}
	if n := d.need(in, "up_to", "`elastic`", hint); n != nil {
		text, ok := d.text(n, "`up_to`", "write `up_to: 2x`")
		times, x := strings.CutSuffix(text, "x")
		v, number := decimal(strings.TrimSpace(times))
		switch {
		case !ok:
		case number && !x:
			d.fail(n.Pos, "`up_to` is how many times the limit, and "+diag.Quote(text)+" has no x", "write "+diag.Quote("up_to: "+text+"x"))
		case !number || v <= 1 || v > 100:
			d.fail(n.Pos, "`up_to` is "+diag.Quote(text)+", and must be above 1x and at most 100x", "write `up_to: 2x`")
		default:
			e.UpTo = v
		}
	}
	return &e
}

// signals are what an elastic limit may go by.
var signals = []string{"upstream_p99", "upstream_inflight", "cpu", "load"}

// while reads a signal below a bound into e.
func (d *decoder) while(n *yamltree.Node, e *Elastic) {
	const hint = "write a signal below a bound: `while: upstream_p99 < 200ms`, `upstream_inflight < 100`, `cpu < 80%` or `load < 4`"
	text, ok := d.text(n, "`while`", hint)
	if !ok {
		return
	}
	name, threshold, below := strings.Cut(text, "<")
	name, threshold = strings.TrimSpace(name), strings.TrimSpace(threshold)
	if !below || threshold == "" || threshold[0] == '=' {
		d.fail(n.Pos, diag.Quote(text)+" does not say below what the signal must be", hint)
		return
	}
	if _, ok := d.oneOf(&yamltree.Node{Kind: yamltree.Scalar, Value: name, Pos: n.Pos}, "the signal", signals...); !ok {
		return
	}
	e.Signal = Word{name, n.Pos}
	if e.Below, ok = signalBound(name, threshold); !ok {
		d.fail(n.Pos, diag.Quote(threshold)+" is not a valid bound for "+diag.Quote(name), hint)
	}
}

// signalBound parses a bound, and returns it in the unit of its signal: seconds, requests, a share from
// 0 to 1, or as pushed.
func signalBound(signal, text string) (float64, bool) {
	switch signal {
	case "upstream_p99":
		v, err := time.ParseDuration(text)
		return v.Seconds(), err == nil && v > 0
	case "cpu", "memory":
		number, percent := strings.CutSuffix(text, "%")
		v, ok := decimal(strings.TrimSpace(number))
		if percent {
			v /= 100
		}
		return v, ok && v > 0 && v <= 1
	case "upstream_inflight", "inflight":
		v, ok := decimal(text)
		return v, ok && v > 0 && v == math.Trunc(v)
	}
	v, ok := decimal(text)
	return v, ok && v > 0
}

// Ceiling returns the limit that decides if s, as written, is only nominal, because o is soft or
// elastic. It counts in the same way, so that both fill up at the same time. It is rounded down: 10%
// more than 3 is 3.
func (o *Over) Ceiling(s tidegate.Spec) tidegate.Spec {
	raise := func(n int64) int64 { return n + n/100*int64(o.Soft) + n%100*int64(o.Soft)/100 }
	if o.Elastic != nil {
		// The addend keeps 110 of 100 from becoming 109.
		raise = func(n int64) int64 { return max(int64(math.Floor(float64(n)*o.Elastic.UpTo+1e-6)), n) }
	}
	if s.Algorithm == tidegate.TokenBucket && s.Burst > 0 {
		s.Burst = raise(s.Burst)
	}
	s.Events = raise(s.Events)
	return s
}
