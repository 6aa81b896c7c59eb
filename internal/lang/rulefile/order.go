package rulefile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// Order is what an operator sets in place of the limits of a rule, for particular callers and for a
// while. What it does not name stays as in the rule.
type Order struct {
	Unlimited bool    // nothing of the rule applies
	Limits    []Limit // nil means those of the rule; their algorithm may be Auto
	Amount    int64   // of the quota; 0 means the rule's
	Calendar  tidegate.Calendar
	Slots     int64 // of concurrency; 0 means the rule's
}

// maxOrder bounds the text of one limit.
const maxOrder = 200

const orderHint = "write `5000/minute`, `20 slots` or `unlimited`"

// ReadOrder reads limits as an operator writes them for r: rates, amounts of its quota, slots, or
// `unlimited` alone.
func ReadOrder(r *Rule, texts []string) (Order, diag.List) {
	d := newDecoder("limits", Options{})
	var o Order
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if text == "unlimited" {
			o.Unlimited = true
			if len(texts) > 1 {
				d.fail(diag.Pos{}, "`unlimited` cannot be one of several limits", "write it alone, or remove it")
			}
			continue
		}
		d.readOrder(r, &o, text)
	}
	if len(texts) == 0 {
		d.fail(diag.Pos{}, "there are no limits", orderHint)
	}
	return o, d.problems.List()
}

// readOrder adds one limit, amount or number of slots to o, or reports what is wrong with text.
func (d *decoder) readOrder(r *Rule, o *Order, text string) {
	n := d.orderNode(text)
	if n == nil {
		return
	}
	if count, ok := cutSlots(n); ok {
		d.orderSlots(r, o, count, text)
		return
	}
	if calendar := d.calendarOf(r, n); calendar != tidegate.NoCalendar {
		d.orderAmount(r, o, n, calendar)
		return
	}
	limits, problems := ReadLimits(n, diag.SplitLines([]byte(text)))
	for _, p := range problems {
		if strings.Contains(p.Hint, "deny: true") {
			p.Hint = "to refuse every request, order a ban"
		}
		d.problems.Add(p)
	}
	if problems.HasErrors() {
		return
	}
	if !r.hasAny(func(t Terms) bool { return t.Limits != nil }) {
		d.fail(n.Pos, "the rule "+diag.Quote(r.Name.Text)+" has no limits of that kind, so "+diag.Quote(text)+" would be one more", "write "+r.orderExample())
		return
	}
	o.Limits = append(o.Limits, limits...)
}

// orderNode returns text as a node of a rule file; nil after a mistake.
func (d *decoder) orderNode(text string) *yamltree.Node {
	if len(text) > maxOrder {
		d.fail(diag.Pos{}, "a limit is longer than "+fmt.Sprint(maxOrder)+" bytes", orderHint)
		return nil
	}
	if text == "" || text[0] == '#' {
		d.fail(diag.Pos{}, "a limit is empty", orderHint)
		return nil
	}
	n, problems := yamltree.Parse("limits", []byte(text))
	if problems.HasErrors() {
		d.problems.Add(problems...)
		return nil
	}
	if n == nil || n.Kind == yamltree.Null {
		d.fail(diag.Pos{}, "a limit is empty", orderHint)
		return nil
	}
	return n
}

// cutSlots returns the count of "20 slots" as it is written; false if n is nothing of the kind.
func cutSlots(n *yamltree.Node) (count string, ok bool) {
	words := strings.Fields(n.Value)
	if n.Kind != yamltree.Scalar || len(words) != 2 || words[1] != "slots" && words[1] != "slot" {
		return "", false
	}
	return words[0], true
}

func (d *decoder) orderSlots(r *Rule, o *Order, count, text string) {
	v, why, _ := wholeNumber(count)
	switch {
	case why != "" || v < 1 || v > tidegate.MaxLogEvents:
		d.fail(diag.Pos{}, diag.Quote(text)+" is not a number of slots", fmt.Sprintf("write 1 to %d, as in `20 slots`", tidegate.MaxLogEvents))
	case !r.hasAny(func(t Terms) bool { return t.Concurrency != nil }):
		d.fail(diag.Pos{}, "the rule "+diag.Quote(r.Name.Text)+" has no slots", "write "+r.orderExample())
	case o.Slots > 0:
		d.fail(diag.Pos{}, "there are two numbers of slots", "keep one of them")
	default:
		o.Slots = v
	}
}

// calendarOf returns the calendar of n if it is an amount of a quota, else NoCalendar. What is per month
// or year is always an amount; what is per day or week only if the rule has a quota of that calendar
// and no limit of that period.
func (d *decoder) calendarOf(r *Rule, n *yamltree.Node) tidegate.Calendar {
	_, unit, ok := strings.Cut(n.Value, "/")
	u, known := units[unitOf(strings.TrimSpace(unit))]
	if n.Kind != yamltree.Scalar || !ok || !known || u.calendar == tidegate.NoCalendar {
		return tidegate.NoCalendar
	}
	if u.period == 0 {
		return u.calendar
	}
	quota := r.hasAny(func(t Terms) bool { return t.quotaPer(u.calendar) != nil })
	limit := r.hasAny(func(t Terms) bool { return t.Limits.ofPeriod(u.period) != nil })
	if quota && !limit {
		return u.calendar
	}
	return tidegate.NoCalendar
}

func (d *decoder) orderAmount(r *Rule, o *Order, n *yamltree.Node, calendar tidegate.Calendar) {
	events, _, ok := d.rate(n, "an amount", "1000/month")
	if !ok {
		return
	}
	same := func(t Terms) bool { return t.quotaPer(calendar) != nil }
	switch {
	case !r.hasAny(same):
		d.fail(n.Pos, "the rule "+diag.Quote(r.Name.Text)+" has no quota per "+calendar.String(), "write "+r.orderExample())
	case o.Amount > 0:
		d.fail(n.Pos, "there are two amounts of the quota", "keep one of them")
	default:
		o.Amount, o.Calendar = events, calendar
	}
}

// orderExample returns, for a hint, what an order about r may contain.
func (r *Rule) orderExample() string {
	var forms []string
	all := append([]Terms{r.Terms}, r.branchTerms()...)
	if i := slices.IndexFunc(all, func(t Terms) bool { return t.Limits != nil && len(t.Limits.All) > 0 }); i >= 0 {
		forms = append(forms, all[i].Limits.All[0].Text)
	} else if slices.ContainsFunc(all, func(t Terms) bool { return t.Limits != nil }) {
		forms = append(forms, "5000/minute")
	}
	if i := slices.IndexFunc(all, func(t Terms) bool { return t.Quota != nil }); i >= 0 {
		forms = append(forms, fmt.Sprintf("%d/%s", all[i].Quota.Spec.Events, all[i].Quota.Spec.Calendar))
	}
	if i := slices.IndexFunc(all, func(t Terms) bool { return t.Concurrency != nil }); i >= 0 {
		forms = append(forms, fmt.Sprintf("%d slots", all[i].Concurrency.Spec.Events))
	}
	return diag.Choice(append(forms, "unlimited")) + ", with other numbers"
}

// hasAny reports whether has returns true for the terms of the rule or of one of its branches.
func (r *Rule) hasAny(has func(Terms) bool) bool {
	return has(r.Terms) || slices.ContainsFunc(r.branchTerms(), has)
}

func (r *Rule) branchTerms() []Terms {
	all := make([]Terms, len(r.For))
	for i := range r.For {
		all[i] = r.For[i].Terms
	}
	return all
}

// ofPeriod returns the first limit with a period; nil if there is none.
func (l *Limits) ofPeriod(period time.Duration) *Limit {
	if l == nil {
		return nil
	}
	for i := range l.All {
		if l.All[i].Spec.Period == period {
			return &l.All[i]
		}
	}
	return nil
}
