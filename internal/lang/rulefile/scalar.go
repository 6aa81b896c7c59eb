package rulefile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/yamltree"
)

// text returns the text of n without the space around it. It returns false if n is not a scalar or is
// empty, and reports that. In messages, n is called what.
func (d *decoder) text(n *yamltree.Node, what, hint string) (string, bool) {
	if n.Kind != yamltree.Scalar {
		d.fail(n.Pos, what+" is a single value, and this is "+n.What(), hint)
		return "", false
	}
	text := strings.TrimSpace(n.Value)
	if text == "" {
		d.fail(n.Pos, what+" is empty", hint)
	}
	return text, text != ""
}

// oneOf reads n as one of words.
func (d *decoder) oneOf(n *yamltree.Node, what string, words ...string) (string, bool) {
	hint := "write " + diag.Choice(words)
	text, ok := d.text(n, what, hint)
	if !ok || slices.Contains(words, text) {
		return text, ok
	}
	if near := diag.Nearest(text, words); near != "" {
		hint = "did you mean " + diag.Quote(near) + "? the words are " + strings.Join(words, ", ")
	}
	d.fail(n.Pos, what+" cannot be "+diag.Quote(text), hint)
	return "", false
}

// yes reads n as true or false; false after a mistake.
func (d *decoder) yes(n *yamltree.Node, what string) bool {
	text, _ := d.oneOf(n, what, "true", "false")
	return text == "true"
}

// whole reads n as a whole number from low to high.
func (d *decoder) whole(n *yamltree.Node, what string, low, high int64, example string) (int64, bool) {
	hint := "write " + diag.Quote(example)
	text, ok := d.text(n, what, hint)
	if !ok {
		return 0, false
	}
	v, why, plain := wholeNumber(text)
	if why != "" {
		if field, _, ok := strings.Cut(example, ": "); ok && plain != "" {
			hint = "write " + diag.Quote(field+": "+plain)
		}
		d.fail(n.Pos, what+" "+why, hint)
		return 0, false
	}
	if v < low || v > high {
		d.fail(n.Pos, fmt.Sprintf("%s is %s, and must be from %d to %d", what, text, low, high), hint)
		return 0, false
	}
	return v, true
}

// wholeNumber reads decimal digits, with a minus in front if any, and nothing else, since
// other notations mean different things to different people. why is "" if it succeeds,
// else the rest of a message that begins with the name of the number. plain is how to
// write what was probably meant, "" if that is not known.
func wholeNumber(text string) (v int64, why, plain string) {
	digits := strings.TrimPrefix(text, "-")
	if !allDigits(digits) {
		return 0, "is not a whole number: " + diag.Quote(text), plainNumber(digits)
	}
	if len(digits) > 1 && digits[0] == '0' {
		return 0, "has leading zeros: " + diag.Quote(text), strings.TrimLeft(digits[:len(digits)-1], "0") + digits[len(digits)-1:]
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil && digits != text:
		return 0, "is smaller than any number that can be counted: " + diag.Quote(text), ""
	case err != nil:
		return 0, "is larger than any number that can be counted: " + diag.Quote(text), ""
	}
	return v, "", ""
}

// plainNumber returns 1_000, 1,000, 10k, 2M or 1e3 in digits, "" for anything else.
func plainNumber(text string) string {
	plain := strings.NewReplacer("_", "", ",", "", " ", "").Replace(text)
	if allDigits(plain) {
		return plain
	}
	for suffix, zeros := range map[string]string{"k": "000", "K": "000", "m": "000000", "M": "000000"} {
		if n, ok := strings.CutSuffix(plain, suffix); ok && allDigits(n) {
			return n + zeros
		}
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return ""
}

func allDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// decimal reads digits with at most one point in between.
func decimal(text string) (float64, bool) {
	whole, fraction, point := strings.Cut(text, ".")
	if !allDigits(whole) || point && !allDigits(fraction) || len(text) > 18 {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// percent reads n as a percentage such as 25% or 0.5%, up to 10000%, and returns it in hundredths
// of a percent.
func (d *decoder) percent(n *yamltree.Node, what, example string) (int, bool) {
	hint := "write a percentage, as in " + diag.Quote(example)
	text, ok := d.text(n, what, hint)
	if !ok {
		return 0, false
	}
	number, sign := strings.CutSuffix(text, "%")
	v, ok := decimal(strings.TrimSpace(number))
	if !ok || !sign {
		if field, _, _ := strings.Cut(example, ": "); ok {
			hint = "write " + diag.Quote(field+": "+text+"%")
			if v > 0 && v < 1 { // 0.25 may be meant as a share of 1, which is 25%
				hint = "write " + diag.Quote(field+": "+strconv.FormatFloat(v*100, 'g', 4, 64)+"%") + ", if that is what is meant"
			}
		}
		d.fail(n.Pos, what+" is not a valid percentage: "+diag.Quote(text), hint)
		return 0, false
	}
	hundredths := math.Round(v * 100)
	if math.Abs(hundredths-v*100) > 1e-6 || hundredths > 1e6 {
		d.fail(n.Pos, what+" is "+diag.Quote(text)+", and must be at most 10000% with at most two digits after the point", hint)
		return 0, false
	}
	return int(hundredths), true
}

// duration reads n as a duration from 1ms to longest, in whole microseconds.
func (d *decoder) duration(n *yamltree.Node, what string, longest time.Duration, example string) (time.Duration, bool) {
	hint := "write a duration such as " + diag.Quote(example)
	text, ok := d.text(n, what, hint)
	if !ok {
		return 0, false
	}
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if fix := plainDuration(text, ""); fix != "" {
			hint = fix
		}
		d.fail(n.Pos, what+" is not a valid duration: "+diag.Quote(text), hint)
	case v <= 0:
		d.fail(n.Pos, what+" must be longer than nothing: "+diag.Quote(text), hint)
	case v < time.Millisecond || v > longest:
		d.fail(n.Pos, fmt.Sprintf("%s is %s, and must be from 1ms to %s", what, text, longest), hint)
	case v%time.Microsecond != 0:
		d.fail(n.Pos, what+" must be in whole microseconds: "+diag.Quote(text), hint)
	default:
		return v, true
	}
	return 0, false
}

// plainDuration returns the hint how to write 15, 7d, 2 weeks or "15 minutes" after before;
// "" if text is nothing of the kind.
func plainDuration(text, before string) string {
	count, unit, ok := diag.PlainDuration(text)
	switch {
	case !ok:
		return ""
	case unit == "":
		return fmt.Sprintf("say the unit, as in %s or %s", diag.Quote(before+text+"s"), diag.Quote(before+text+"m"))
	case unit == "d":
		count, unit = 24*count, "h"
	case unit == "w":
		count, unit = 7*24*count, "h"
	}
	return "write " + diag.Quote(fmt.Sprintf("%s%d%s", before, count, unit))
}
