package rules

import (
	"math"
	"testing"
)

func TestParseNumber(t *testing.T) {
	f := func(s string, want int64, ok bool) {
		t.Helper()
		if got, gotOK := parseNumber(s); got != want || gotOK != ok {
			t.Errorf("%q is %d, %v; want %d, %v", s, got, gotOK, want, ok)
		}
	}
	f("1000", 1000, true)
	f("0", 0, true)
	f("007", 7, true)
	f("-3", -3, true)
	f("12.5", 13, true)
	f("1e3", 1000, true)
	f("999999999999999999999", math.MaxInt64, true)
	f("-1e300", math.MinInt64, true)
	f("1e999", math.MaxInt64, true)
	f("", 0, false)
	f("many", 0, false)
	f("0x10", 0, false)
	f("inf", 0, false)
	f("NaN", 0, false)
	f("1_000", 0, false)
	f(" 5", 0, false)
	f("--5", 0, false)
	f("e", 0, false)
}
