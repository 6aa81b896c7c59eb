package tidegate

// Origin says who decided: the store, or what stands before it.
type Origin uint8

const (
	// OriginStore: the store that keeps the counters. It is the zero value, so that
	// a store need not say it.
	OriginStore Origin = iota
	// OriginLocal: counters of this process, in place of a store that cannot answer.
	OriginLocal
	// OriginRemembered: a refusal of the store that this process remembers.
	OriginRemembered
	// OriginRule: the rule itself, without any counter: access rules, and what a rule
	// says is to happen when the store cannot answer.
	OriginRule
	// OriginLeased: events that this process took from the store ahead, or that it
	// knows not to be there; see [Leased].
	OriginLeased
	// OriginSplit: this process's share of the limit; see [Split].
	OriginSplit
	// OriginEventual: what this process has counted and knows of the others; see [Eventual].
	OriginEventual
)

var originNames = [...]string{"store", "local", "remembered", "rule", "leased", "split", "eventual"}

// String gives the word used in logs and metrics, for example "local".
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return "unknown"
}
