package envoy

import (
	"fmt"
	"time"
)

// Unit is the period of a limit. Its numbers are those of RateLimitResponse.RateLimit.Unit
// in Envoy's rate limit service.
type Unit uint8

const (
	NoUnit Unit = iota // not one of these: limits under `tidegate` may have any period
	Second
	Minute
	Hour
	Day
	Month // 30 days
	Year  // 365 days
	Week  // from Monday
)

var units = [...]struct {
	name   string
	period time.Duration
}{
	NoUnit: {"unknown", 0},
	Second: {"second", time.Second},
	Minute: {"minute", time.Minute},
	Hour:   {"hour", time.Hour},
	Day:    {"day", 24 * time.Hour},
	Month:  {"month", 30 * 24 * time.Hour},
	Year:   {"year", 365 * 24 * time.Hour},
	Week:   {"week", 7 * 24 * time.Hour},
}

// unitNames are the words of `unit`, from short to long.
var unitNames = []string{"second", "minute", "hour", "day", "week", "month", "year"}

// String returns the word of configuration files, for example "minute".
func (u Unit) String() string {
	if int(u) < len(units) {
		return units[u].name
	}
	return fmt.Sprintf("unit(%d)", uint8(u))
}

// Period returns how long the unit is; 0 for NoUnit and for what is not a unit.
func (u Unit) Period() time.Duration {
	if int(u) < len(units) {
		return units[u].period
	}
	return 0
}

// unitNamed returns the unit of a word in lower case.
func unitNamed(word string) Unit {
	for u := Second; int(u) < len(units); u++ {
		if units[u].name == word {
			return u
		}
	}
	return NoUnit
}

// unitOf returns the unit of that period.
func unitOf(period time.Duration) Unit {
	for u := Second; int(u) < len(units); u++ {
		if units[u].period == period {
			return u
		}
	}
	return NoUnit
}
