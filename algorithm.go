package tidegate

import "fmt"

// Algorithm names a way to count. The zero value, Auto, is right for most limits: it is
// exact for small ones, and for large ones off by at most a sixtieth of the period: a
// window shorter by that much never has more than the limit.
type Algorithm uint8

const (
	// Auto is SlidingLog up to AutoLogEvents events, and SubWindows with DefaultParts parts
	// above. For limits that are [Leased] or [Split] it is TokenBucket, for [Eventual] ones
	// SubWindows. [NewLimit] replaces it by the algorithm that it stands for.
	Auto Algorithm = iota
	// TokenBucket refills at events/period up to burst. Cheapest, smooth; in
	// one period right after idling it lets burst + events through.
	TokenBucket
	// LeakyBucket lets events leave one by one at a constant rate, first in
	// first out; Burst is how many may wait in the queue.
	LeakyBucket
	// FixedWindow counts per aligned window of the wall clock (UTC; weeks
	// start on Monday). Around a boundary, twice the limit can pass.
	FixedWindow
	// SlidingLog keeps a stamp per event: exact in every window.
	SlidingLog
	// SlidingWindow keeps two counts and weighs the older by its overlap, or, with
	// Ceiling, counts it whole and is never over.
	SlidingWindow
	// SubWindows keeps Parts+1 counts and weighs only the oldest by its
	// overlap, or, with Ceiling, counts it whole and is never over.
	SubWindows
	// Concurrency counts slots in use; each is held on a lease of Period.
	Concurrency
	// Quota counts per calendar period in a zone: days, weeks, months, years.
	Quota
	// Deny is an access rule: a Gate refuses on it and counts nothing. No store
	// takes it.
	Deny

	algorithms // how many there are
)

// What Auto chooses.
const (
	AutoLogEvents = 64
	DefaultParts  = 60
)

var algorithmNames = [algorithms]string{
	"auto", "token_bucket", "leaky_bucket", "fixed_window", "sliding_log",
	"sliding_window", "sub_windows", "concurrency", "quota", "deny",
}

// String gives the name used in rule files, for example "token_bucket".
func (a Algorithm) String() string {
	if a < algorithms {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// ParseAlgorithm is the inverse of [Algorithm.String].
func ParseAlgorithm(name string) (Algorithm, error) {
	for i, n := range algorithmNames {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("unknown algorithm %q: want one of %v", name, algorithmNames[1:])
}
