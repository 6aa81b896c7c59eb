package diag

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
)

// Quote returns text in backquotes, shortened to fit a line.
func Quote(text string) string {
	const longest = 80
	if len(text) > longest {
		if r := []rune(text); len(r) > longest {
			text = string(r[:longest]) + "…"
		}
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		text = strings.Join(strings.Fields(text), " ")
	}
	return "`" + text + "`"
}

// Choice returns words as in "`a`, `b` or `c`".
func Choice(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	last := len(quoted) - 1
	if last < 1 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// Reason returns err without the operation and the name of the file, which the message already has.
func Reason(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return err.Error()
}

// unitNames are common names of units of time.
var unitNames = map[string]string{
	"ms": "ms", "msec": "ms", "milli": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "d", "day": "d", "days": "d", "w": "w", "week": "w", "weeks": "w",
}

// PlainDuration parses common notations of durations: 15, 2 weeks, "15 minutes". The unit is one of
// ms, s, m, h, d and w, or "" if there is none.
func PlainDuration(text string) (count int64, unit string, ok bool) {
	rest := strings.TrimLeft(text, "0123456789")
	count, err := strconv.ParseInt(text[:len(text)-len(rest)], 10, 32)
	if err != nil {
		return 0, "", false
	}
	name := strings.ToLower(strings.TrimSpace(rest))
	unit, ok = unitNames[name]
	return count, unit, ok || name == ""
}
