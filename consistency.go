package tidegate

// Consistency is how the instances of a fleet share a limit. The store of package fleet acts on
// it; for a store that is not shared it makes no difference. If a limit names no algorithm, Leased
// and Split make it a TokenBucket, and Eventual makes it SubWindows.
type Consistency uint8

const (
	// Strict: every request is counted in the store that all share. Never above the limit.
	Strict Consistency = iota
	// Leased: for keys with many requests, instances take events ahead and use them up
	// within a tenth of a second. Never above the limit; meanwhile up to a tenth of a
	// second's worth of events may be held back from the burst. For TokenBucket,
	// FixedWindow and Quota; others, and limits too small to take ahead from, stay Strict.
	Leased
	// Split: every instance has its share of the limit and counts by itself; the shared
	// store is not asked. For TokenBucket, FixedWindow and Quota; others stay Strict.
	Split
	// Eventual: every instance decides by itself, and ten times a second they exchange what
	// they have counted through the shared store. Only a request for a key that was not asked about
	// lately waits for that store, briefly; what is
	// admitted above the limit is at most what is offered between two exchanges. For SubWindows,
	// FixedWindow, SlidingWindow and Quota; others stay Strict.
	Eventual
)

var consistencyNames = [...]string{"strict", "leased", "split", "eventual"}

// String gives the word of rule files, for example "leased".
func (c Consistency) String() string {
	if int(c) < len(consistencyNames) {
		return consistencyNames[c]
	}
	return "unknown"
}

// Suits reports whether limits of an algorithm can be shared in this way. Those that cannot are Strict.
func (c Consistency) Suits(a Algorithm) bool {
	switch a {
	case FixedWindow, Quota:
		return true
	case TokenBucket:
		return c != Eventual
	case SubWindows, SlidingWindow:
		return c == Strict || c == Eventual
	}
	return c == Strict
}

// OnPartition is what a region of a fleet does while it is cut off from the others. An [Eventual] limit
// with PartitionContinue or PartitionShare is counted over all regions, each of which has a store of its
// own. Any other limit is counted in each region by itself.
type OnPartition uint8

const (
	// RegionsApart: each region counts by itself, and has the whole limit.
	RegionsApart OnPartition = iota
	// PartitionContinue: a region goes on with the whole limit and the last counts of the others.
	PartitionContinue
	// PartitionShare: a region is held to its share of the limit, which is divided by the number of
	// regions.
	PartitionShare
)

var onPartitionNames = [...]string{"", "continue", "share"}

// String gives the word of rule files, "continue" or "share"; "" for RegionsApart.
func (p OnPartition) String() string {
	if int(p) < len(onPartitionNames) {
		return onPartitionNames[p]
	}
	return "unknown"
}
