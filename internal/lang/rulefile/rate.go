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

// units are the periods that have a name. Months and years are only periods of the calendar, with a
// period of 0; days and weeks are both.
var units = map[string]struct {
	period   time.Duration
	calendar tidegate.Calendar
}{
	"second": {period: time.Second},
	"minute": {period: time.Minute},
	"hour":   {period: time.Hour},
	"day":    {24 * time.Hour, tidegate.Day},
	"week":   {7 * 24 * time.Hour, tidegate.Week},
	"month":  {calendar: tidegate.Month},
	"year":   {calendar: tidegate.Year},
}

var unitNames = []string{"second", "minute", "hour", "day", "week", "month", "year"}

// unitSpellings are other spellings of units, which are accepted.
var unitSpellings = map[string]string{"s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day"}

// unitOf returns the name of the unit that is spelled so, or period itself if it is no other spelling.
func unitOf(period string) string {
	if name, ok := unitSpellings[period]; ok {
		return name
	}
	return period
}

// unitNicknames are what people write instead of a unit, for hints.
var unitNicknames = map[string]string{
	"s": "second", "sec": "second", "secs": "second", "seconds": "second",
	"m": "minute", "min": "minute", "mins": "minute", "minutes": "minute",
	"h": "hour", "hr": "hour", "hrs": "hour", "hours": "hour",
	"d": "day", "days": "day", "daily": "day", "w": "week", "weeks": "week", "weekly": "week",
	"mo": "month", "months": "month", "monthly": "month", "y": "year", "years": "year", "yearly": "year",
}

// rate reads n as a rate such as 100/minute, and returns the text of the period, which the
// caller interprets.
func (d *decoder) rate(n *yamltree.Node, what, example string) (events int64, period string, ok bool) {
	text, ok := d.text(n, what, "write "+diag.Quote(example))
	if !ok {
		return 0, "", false
	}
	count, period, slash := strings.Cut(text, "/")
	count, period = strings.TrimSpace(count), strings.TrimSpace(period)
	if !slash || count == "" || period == "" {
		wrong := notRate(text, count, example)
		d.fail(n.Pos, wrong.message, wrong.hint)
		return 0, "", false
	}
	events, wrong := parseEvents(text, count, period, example)
	if wrong != (mistake{}) {
		d.fail(n.Pos, wrong.message, wrong.hint)
		return 0, "", false
	}
	return events, period, true
}

// parseEvents reads count, the number of the rate text.
func parseEvents(text, count, period, example string) (int64, mistake) {
	v, why, plain := wholeNumber(count)
	_, isDecimal := decimal(count)
	switch {
	case v > tidegate.MaxCount || why != "" && plain == "" && allDigits(count):
		return 0, mistake{
			fmt.Sprintf("%s is more than can be counted, which is %d", diag.Quote(text), int64(tidegate.MaxCount)),
			"take a shorter period, or a larger unit with a `cost` per request",
		}
	case why != "" && plain != "":
		return 0, mistake{"the number of " + diag.Quote(text) + " " + why, "write " + diag.Quote(plain+"/"+period)}
	case why != "" && isDecimal:
		return 0, mistake{"the number of " + diag.Quote(text) + " " + why, "take a longer period, in whole numbers: `3/2s` instead of `1.5/second`"}
	case why != "":
		return 0, mistake{"the number of " + diag.Quote(text) + " " + why, "write " + diag.Quote(example)}
	case v < 0:
		return 0, mistake{"a limit cannot be negative: " + diag.Quote(text), "write " + diag.Quote(strings.TrimPrefix(count, "-")+"/"+period)}
	case v == 0:
		return 0, mistake{diag.Quote(text) + " lets nothing through", "to refuse every request write `deny: true` instead"}
	}
	return v, mistake{}
}

// notRate returns the mistake of a text without a number or a period. count is what stands
// before its slash.
func notRate(text, count, example string) mistake {
	if head, tail, ok := strings.Cut(text, " per "); ok {
		return mistake{diag.Quote(text) + " is not a valid rate", "write " + diag.Quote(strings.TrimSpace(head)+"/"+strings.TrimSpace(tail))}
	}
	if allDigits(count) {
		_, unit, _ := strings.Cut(example, "/")
		return mistake{diag.Quote(text) + " does not say per what", "write " + diag.Quote(count+"/"+unit)}
	}
	return mistake{diag.Quote(text) + " is not a valid rate", "write how many per what: " + diag.Quote(example)}
}

// period reads the part of a rate after the slash, or a unit alone, as a duration, and
// reports units of the calendar alone. text is the whole value, for messages.
func (d *decoder) period(pos diag.Pos, period, text string) (time.Duration, bool) {
	if u, ok := units[unitOf(period)]; ok && u.period > 0 {
		return u.period, true
	}
	before := strings.TrimSuffix(text, period)
	if u, ok := units[period]; ok {
		d.fail(pos, "a "+u.calendar.String()+" is a calendar period, which `limits` does not have", "use a quota: `quota: { amount: "+or(strings.TrimSpace(before), "100000/")+period+" }`")
		return 0, false
	}
	v, err := time.ParseDuration(period)
	switch {
	case err != nil:
		d.fail(pos, unknownUnit(period), unitHint(period, before))
	case v <= 0:
		d.fail(pos, "the period of "+diag.Quote(text)+" must be longer than nothing", "write "+diag.Quote(before+"second")+" or "+diag.Quote(before+"30s"))
	case v < tidegate.MinPeriod || v%time.Microsecond != 0:
		d.fail(pos, "the period of "+diag.Quote(text)+" is too fine: the shortest is 1ms, in whole microseconds", "write "+diag.Quote(before+"second"))
	case v > tidegate.MaxPeriod:
		d.fail(pos, "the period of "+diag.Quote(text)+" is longer than 366 days", "use a quota: "+diag.Quote("quota: { amount: "+before+"year }"))
	default:
		return v, true
	}
	return 0, false
}

func unknownUnit(period string) string { return "unknown unit " + diag.Quote(period) }

// unitHint returns what to write for an unknown unit; before is what precedes it.
func unitHint(period, before string) string {
	lower := strings.ToLower(period)
	unit, ok := unitNicknames[lower]
	if !ok {
		unit = diag.Nearest(lower, unitNames)
	}
	if slices.Contains(unitNames, lower) {
		unit = lower
	}
	if unit != "" {
		return "did you mean " + diag.Quote(before+unit) + "?"
	}
	if fix := plainDuration(period, before); fix != "" {
		return fix
	}
	return "the units are second, minute, hour, day, week and durations such as 30s, 15m, 1h30m; `month` and `year` for quotas"
}
