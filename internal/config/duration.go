package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/diag"
)

const day = 24 * time.Hour

// lasting returns the codec of a duration from least to most.
func lasting(least, most time.Duration) codec[time.Duration] {
	return duration(span[int64]{least: int64(least), most: int64(most)})
}

// lastingOrNone is lasting that also takes 0, which means no bound.
func lastingOrNone(least, most time.Duration) codec[time.Duration] {
	return duration(span[int64]{least: int64(least), most: int64(most), orZero: true})
}

func duration(s span[int64]) codec[time.Duration] {
	return codec[time.Duration]{
		read: func(w rawValue) (time.Duration, mistake) {
			v, ok := parseDuration(w.text)
			if !ok {
				return 0, wrong("is not a valid duration: "+quote(w.text), plainDuration(w.text))
			}
			if !s.has(int64(v)) {
				return 0, s.outside(w.text, func(v int64) string { return writeDuration(time.Duration(v)) })
			}
			return v, mistake{}
		},
		write: writeDuration,
	}
}

// parseDuration reads what time.ParseDuration reads, and days, as in 1d or 1d12h.
func parseDuration(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		v, err := time.ParseDuration(text)
		return v, err == nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || n > uint64(math.MaxInt64/day) {
		return 0, false
	}
	v := time.Duration(n) * day
	if rest == "" {
		return v, true
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more >= day {
		return 0, false
	}
	return v + more, v+more >= 0
}

// writeDuration returns v as text, which is shorter than that of String: 2m for 2m0s, 0 for 0s.
func writeDuration(v time.Duration) string {
	text := v.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if text == "0s" {
		return "0"
	}
	return text
}

// plainDuration returns how to write a duration such as 15, 2 weeks or "15 minutes"; "" for other
// texts.
func plainDuration(text string) string {
	count, unit, ok := diag.PlainDuration(text)
	switch {
	case !ok:
		return ""
	case unit == "":
		unit = "s"
	case unit == "w":
		count, unit = 7*count, "d"
	}
	return fmt.Sprintf("%d%s", count, unit)
}
