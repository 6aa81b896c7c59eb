package client

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxDelay is the longest time that is read from a header; longer ones become this.
	maxDelay = 10 * 366 * 24 * time.Hour
	// Numbers from minEpoch and from minEpochMillis on are a time since 1970, in seconds and in
	// milliseconds: as a delay they would be longer than maxDelay. From maxEpochMillis on they
	// are a delay again.
	minEpoch, minEpochMillis, maxEpochMillis = 4e8, 4e11, 1e16
	// longOver: a number that would be a moment further in the past than this is a delay.
	longOver = 24 * time.Hour
)

// serverTime returns the time by the clock of the server, if it says so: moments in its headers
// are by that clock. The Date is rounded down, so that delays come out too long rather than
// too short.
func serverTime(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// parseReset parses a delay or a moment: "30", "0.5", "1700000000", "1m30s", a date of HTTP
// or of RFC 3339. A moment that is over is a delay of 0.
func parseReset(s string, now time.Time) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if f, ok := parseDecimal(s); ok {
		if at, ok := momentOf(f); ok {
			return until(at, now), true
		}
		return inUnits(f, time.Second), true
	}
	if s == "" || len(s) > 64 {
		return 0, false
	}
	if d, err := time.ParseDuration(s); err == nil {
		return min(max(d, 0), maxDelay), d >= 0
	}
	if at, err := http.ParseTime(s); err == nil {
		return until(at, now), true
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return until(at, now), true
	}
	return 0, false
}

// momentOf returns the Unix time that f is, in seconds or milliseconds, if it is too large for a
// delay.
func momentOf(f float64) (at time.Time, ok bool) {
	switch {
	case f < minEpoch || f >= maxEpochMillis:
		return time.Time{}, false
	case f >= minEpochMillis:
		return time.UnixMilli(int64(f)), true
	}
	second, part := math.Modf(f)
	return time.Unix(int64(second), int64(part*1e9)), true
}

// parseRetryAfter parses a line of Retry-After. A proxy may join several lines with commas: the
// longest delay counts.
func parseRetryAfter(line string, now time.Time) (longest time.Duration, told bool) {
	if d, ok := parseDelay(line, now); ok || len(line) > maxField {
		return d, ok
	}
	before := ""
	for part := range strings.SplitSeq(line, ",") {
		d, ok := parseDelay(part, now)
		if !ok { // a date has a comma itself
			d, ok = parseDelay(before+","+part, now)
		}
		if ok {
			longest, told = max(longest, d), true
		}
		before = part
	}
	return longest, told
}

// parseDelay is parseReset for fields whose numbers should be delays, although some servers send
// moments: 999999999 is a very long delay, not a day of 2001.
func parseDelay(s string, now time.Time) (time.Duration, bool) {
	if f, ok := parseDecimal(s); ok {
		if at, ok := momentOf(f); ok && now.Sub(at) > longOver {
			return maxDelay, true
		}
	}
	return parseReset(s, now)
}

// parseNumber parses a delay in a unit.
func parseNumber(s string, unit time.Duration) (time.Duration, bool) {
	f, ok := parseDecimal(s)
	return inUnits(f, unit), ok
}

// inUnits returns f units, or maxDelay if that is shorter.
func inUnits(f float64, unit time.Duration) time.Duration {
	if f *= float64(unit); f < float64(maxDelay) {
		return time.Duration(f)
	}
	return maxDelay
}

func until(at, now time.Time) time.Duration { return min(max(at.Sub(now), 0), maxDelay) }

// parseCount parses a number of events and drops its fraction.
func parseCount(s string) (int64, bool) {
	f, ok := parseDecimal(s)
	if !ok || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// parseDecimal parses digits with an optional fraction, and nothing else that Go would take
// for a number.
func parseDecimal(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || s[0] == '.' || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange) // infinite
}
