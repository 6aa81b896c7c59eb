package domainfile

import (
	"slices"
	"strconv"
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

var domainOwnPlace = place{
	name: "`tidegate` of a domain", words: []string{"atomic", "waive"}, example: "tidegate: { atomic: true }",
	advice: map[string]string{
		"algorithm": "`algorithm` is of one limit: `rate_limit: { tidegate: { algorithm: token_bucket }, unit: minute, requests_per_unit: 100 }`",
	},
}

// domainOwn reads the keys of a domain that only Tidegate has.
func (r *reader) domainOwn(f yamltree.Field) {
	o, ok := r.open(f.Value, &domainOwnPlace)
	if !ok {
		return
	}
	r.domain.Atomic = r.domain.Atomic || r.yes(o, "atomic")
	if f, ok := o.field("waive"); ok {
		r.waive(f)
	}
}

// waive reads why what lint finds in the file is accepted. Which checks there are is known
// to lint.
func (r *reader) waive(f yamltree.Field) {
	const hint = "name the check and say why: `waive: { no-limit-here: \"limited elsewhere\" }`"
	if f.Value.Kind != yamltree.Map {
		r.fail(f.Value.Pos, "`waive` is a map of checks and reasons, and this is "+f.Value.What(), hint)
		return
	}
	for _, f := range f.Value.Fields {
		reason, ok := r.text(f, "the reason to waive "+diag.Quote(f.Key.Value))
		if ok && strings.TrimSpace(reason) == "" {
			r.fail(f.Key.Pos, "the reason to waive "+diag.Quote(f.Key.Value)+" is missing", hint)
		}
		r.file.Waive = append(r.file.Waive, Waiver{Check: Word{f.Key.Value, f.Key.Pos}, Reason: reason})
	}
}

var ownPlace = place{
	name:    "`tidegate` of a limit",
	words:   []string{"algorithm", "burst", "limits", "consistency", "count_rejected", "settle"},
	example: "tidegate: { algorithm: token_bucket, burst: 20 }",
	advice: map[string]string{
		"atomic": "`atomic` is of the domain: write `tidegate: { atomic: true }` below `domain`", "waive": "`waive` is of the domain: write `tidegate: { waive: { check: \"why\" } }` below `domain`",
		"rate": "write `limits: 100/minute`", "unit": "`unit` is beside `tidegate`, not below it", "requests_per_unit": "`requests_per_unit` is beside `tidegate`, not below it",
		"mode": "write `shadow_mode: true` beside `rate_limit`",
	},
}

// algorithms are those of this dialect. A leaky bucket is not among them: it makes requests
// wait, and nobody waits here.
var algorithms = []string{"fixed_window", "token_bucket", "sliding_log", "sliding_window", "sub_windows"}

// own reads the keys of a limit that only Tidegate has.
func (r *reader) own(f yamltree.Field, l *RateLimit) {
	o, ok := r.open(f.Value, &ownPlace)
	if !ok {
		return
	}
	own := &l.Own
	own.Pos = f.Key.Pos
	if word, ok := r.word(o, "algorithm", algorithms...); ok {
		own.Algorithm, _ = tidegate.ParseAlgorithm(word)
	}
	if word, ok := r.word(o, "consistency", "strict", "leased", "eventual", "split"); ok {
		own.Consistency = map[string]tidegate.Consistency{"strict": tidegate.Strict, "leased": tidegate.Leased, "eventual": tidegate.Eventual, "split": tidegate.Split}[word]
	}
	if o.has("count_rejected") {
		counts := r.yes(o, "count_rejected")
		own.CountRejected = &counts
	}
	own.Settle = r.yes(o, "settle")
	if f, has := o.field("burst"); has {
		r.burst(f, own)
	}
	own.limits = o.has("limits")
	if f, has := o.field("limits"); has {
		r.limits(f, own)
	}
	r.fitting(o, own)
}

// word takes a field as one of words.
func (r *reader) word(o object, field string, words ...string) (string, bool) {
	f, ok := o.field(field)
	if !ok {
		return "", false
	}
	text, ok := r.text(f, diag.Quote(field))
	if !ok || slices.Contains(words, text) {
		return text, ok
	}
	hint := "write " + diag.Choice(words)
	if near := diag.Nearest(text, words); near != "" {
		hint = "did you mean " + diag.Quote(near) + "? the words are " + strings.Join(words, ", ")
	}
	switch text {
	case "gcra":
		hint = "write `token_bucket`, which is counted that way"
	case "leaky_bucket":
		hint = "a leaky bucket makes requests wait, which Envoy does not do: write `token_bucket` with `burst: 1`"
	}
	r.fail(f.Value.Pos, diag.Quote(field)+" cannot be "+diag.Quote(text), hint)
	return "", false
}

func (r *reader) burst(f yamltree.Field, own *Own) {
	text, ok := r.text(f, "`burst`")
	if !ok {
		return
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 1 || v > tidegate.MaxCount {
		r.fail(f.Value.Pos, "`burst` is not a whole number from 1 to "+strconv.Itoa(tidegate.MaxCount)+": "+diag.Quote(text), "write `burst: 20`")
		return
	}
	own.Burst = v
}

// limits reads limits in the notation of rule files.
func (r *reader) limits(f yamltree.Field, own *Own) {
	all, problems := rulefile.ReadLimits(f.Value, r.file.lines[f.Key.Pos.File])
	for _, p := range problems {
		if strings.Contains(p.Message, "calendar") {
			p.Hint = "months and years are units of `rate_limit`: write `unit: month`, which is 30 days, or a duration such as `100/720h`"
		}
		p.Hint, _, _ = strings.Cut(p.Hint, "; `month` and `year` for quotas")
		if !r.broken[lineOf(p.Pos)] {
			r.problems.Add(p)
		}
	}
	for _, l := range all {
		own.Limits = append(own.Limits, Limit{Text: l.Text, Pos: l.Pos, Spec: l.Spec})
	}
}

// fitting reports keys that the algorithm would ignore in silence.
func (r *reader) fitting(o object, own *Own) {
	a := own.Algorithm
	if a == tidegate.Auto {
		a = tidegate.FixedWindow
	}
	if own.Burst > 0 && a != tidegate.TokenBucket {
		r.fail(o.key("burst"), "`burst` means nothing to "+a.String(), "write `algorithm: token_bucket`, or remove `burst`")
	}
	if own.CountRejected != nil && *own.CountRejected && a != tidegate.FixedWindow && a != tidegate.SlidingLog {
		r.fail(o.key("count_rejected"), "`count_rejected` means nothing to "+a.String(), "write `algorithm: fixed_window` or `algorithm: sliding_log`, or remove `count_rejected`")
	}
	if own.CountRejected != nil && *own.CountRejected && own.limits && a == tidegate.FixedWindow {
		r.fail(o.key("count_rejected"), "`count_rejected` means nothing to several limits: what one refuses is charged to none", "remove `limits` or `count_rejected`")
	}
	if !own.Consistency.Suits(a) {
		r.fail(o.key("consistency"), a.String()+" cannot be "+own.Consistency.String(), FittingHint(own.Consistency))
	}
}

// FittingHint returns which algorithms can be shared so.
func FittingHint(c tidegate.Consistency) string {
	if c == tidegate.Eventual {
		return "write `algorithm: sub_windows` or `algorithm: fixed_window`, or remove `consistency`"
	}
	return "write `algorithm: token_bucket` or `algorithm: fixed_window`, or remove `consistency`"
}
