package ruletest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

// expect checks what else a step says about its last request.
func (r *running) expect(s *step, i int, d *tidegate.Decision) {
	e := &s.Expect
	if e.Rule != nil && decider(d) != e.Rule.Value {
		r.fail(e.Rule.Pos, s, i, fmt.Sprintf("wanted `%s` to decide, it was %s", e.Rule.Value, name(decider(d))), d)
	}
	if e.Class != nil {
		if class := r.live.Explain(s.newRequest()).Class; class != e.Class.Value {
			r.fail(e.Class.Pos, s, i, fmt.Sprintf("wanted the class `%s`, got `%s`", e.Class.Value, class), d)
		}
	}
	if e.Shadow != nil && !slices.Contains(r.trace.over, e.Shadow.Value) {
		r.fail(e.Shadow.Pos, s, i, fmt.Sprintf("wanted `%s` to say it would have refused, it did not", e.Shadow.Value), d)
	}
	r.number(e.Remaining, s, i, "remaining", remaining(d), d)
	if e.Answer != nil {
		r.number(e.Answer, s, i, "answer", r.answer(s, d), d)
	}
	r.time(e.RetryAfter, s, i, "retry_after", d.RetryAfter, d)
	r.time(e.ResetAfter, s, i, "reset_after", d.ResetAfter, d)
	r.time(e.Wait, s, i, "wait", d.Wait, d)
}

// remaining returns what clients are told: the remainder of the nominal limit if a ceiling decides.
func remaining(d *tidegate.Decision) int64 {
	if d.Limit == nil || d.Limit.Terms.Answer.Nominal == nil || d.Limit.Terms.Role == tidegate.Blocks {
		return d.Remaining
	}
	return max(d.Remaining-d.Limit.Capacity()+d.Limit.Terms.Answer.Nominal.Capacity(), 0)
}

func (r *running) number(want *placedNumber, s *step, i int, what string, got int64, d *tidegate.Decision) {
	if want != nil && want.Value != got {
		r.fail(want.Pos, s, i, fmt.Sprintf("wanted %s %d, got %d", what, want.Value, got), d)
	}
}

// time compares to the millisecond: in a test file, 333ms may mean a third of a second.
func (r *running) time(want *placedTime, s *step, i int, what string, got time.Duration, d *tidegate.Decision) {
	if want != nil && (got-want.Value).Abs() >= time.Millisecond {
		r.fail(want.Pos, s, i, fmt.Sprintf("wanted %s %s, got %s", what, want.Value, got.Round(time.Microsecond)), d)
	}
}

func decider(d *tidegate.Decision) string {
	if d.Limit == nil {
		return ""
	}
	return d.Limit.Terms.Rule
}

func name(rule string) string {
	if rule == "" {
		return "no rule"
	}
	return "`" + rule + "`"
}

// trace is the rules that a request met.
type trace struct {
	decide []string // that hold it to a limit
	over   []string // that only try, and would have refused
}

func (t *trace) add(rule string, c *tidegate.Check) {
	switch {
	case !c.Advisory && !slices.Contains(t.decide, rule):
		t.decide = append(t.decide, rule)
	case c.Advisory && c.Over && c.Limit.Terms.Role == tidegate.Tries:
		t.over = append(t.over, rule)
	}
}

func (r *running) fail(pos diag.Pos, s *step, i int, message string, d *tidegate.Decision) {
	if s.Times > 1 {
		message = fmt.Sprintf("%s (time %d of %d)", message, i+1, s.Times)
	}
	r.failures = append(r.failures, Failure{
		Pos: pos, Source: line(r.file.lines, pos.Line), Message: message, Why: r.why(s, d),
	})
}

// why explains the last request, line by line.
func (r *running) why(s *step, d *tidegate.Decision) []string {
	why := []string{fmt.Sprintf("at %s, %s %s%s", s.At, s.Method, s.Host, s.Target)}
	if d.Limit != nil {
		text := fmt.Sprintf("decided by %s: %d remaining", d.Limit, remaining(d))
		if d.RetryAfter > 0 {
			text += fmt.Sprintf(", retry after %s", ceilMicro(d.RetryAfter))
		}
		why = append(why, text)
	}
	applied := "no rule holds this request to a limit"
	if len(r.trace.decide) > 0 {
		applied = "rules that hold it: " + strings.Join(r.trace.decide, ", ")
	}
	why = append(why, applied)
	for _, rule := range r.live.Explain(s.newRequest()).Rules {
		if rule.Why != "" && rule.Name == expected(s) {
			why = append(why, fmt.Sprintf("`%s` does not hold it: %s", rule.Name, rule.Why))
		}
	}
	return why
}

func expected(s *step) string {
	if s.Expect.Rule == nil {
		return ""
	}
	return s.Expect.Rule.Value
}

// ceilMicro rounds up to whole microseconds: rounded down, a client would come back before there is
// room.
func ceilMicro(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}
