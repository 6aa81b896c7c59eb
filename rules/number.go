package rules

import (
	"math"
	"strconv"
	"strings"
)

// parseNumber parses a number in a request: 1000, -3, 12.5 (which becomes 13, since a cost is in
// whole events), 1e3. For a number beyond an int64 it returns the largest or the smallest one.
func parseNumber(s string) (int64, bool) {
	if n, ok := parseDigits(s); ok {
		return n, true
	}
	// Names of numbers (inf, nan) and hexadecimals are no amounts.
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case f >= math.MaxInt64: // also where ParseFloat says that it is out of range
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	case err != nil:
		return 0, false
	}
	return int64(math.Ceil(f)), true
}

// parseDigits is the fast path, for plain digits.
func parseDigits(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
