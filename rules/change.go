package rules

import (
	"encoding/json"
	"fmt"
	"time"
)

// Change is what happens to the counters of a limit when one Set replaces another, if they do not
// simply continue.
type Change struct {
	Rule  string `json:"rule"`
	Part  string `json:"part,omitempty"` // block, nominal or candidate; "" for the limit itself
	Limit string `json:"limit"`          // 100/1m0s token_bucket
	// Was is the limit that it replaces; "" when there was none.
	Was string `json:"was,omitempty"`
	// For is for how long requests are held to the old counters as well, so that nobody gets a
	// fresh allowance; 0 when the counters start empty.
	For time.Duration `json:"-"`
	// Why says why the counters start empty.
	Why string `json:"why,omitempty"`
	// Gone is a tier, a table row or a branch that no longer exists, and Who is the requests that
	// it was for. Limit is what they are held to now, Was what they were held to, and Counted says
	// what happens to their counts. If Gone and Limit are "", Who is what a rule newly counts apart
	// or together, so that its counters start empty.
	Gone    string `json:"gone,omitempty"`
	Who     string `json:"who,omitempty"`
	Counted string `json:"counted,omitempty"`
}

// String describes the change in a sentence.
func (c Change) String() string {
	if c.Gone != "" {
		return fmt.Sprintf("rule %s: %s is gone: requests with %s are held to %s instead of %s, and %s", c.Rule, c.Gone, c.Who, c.Limit, c.Was, c.Counted)
	}
	if c.Limit == "" {
		return fmt.Sprintf("rule %s: counters of %s start empty: %s", c.Rule, c.Who, c.Why)
	}
	limit := c.Limit
	if c.Part != "" {
		limit += " (" + c.Part + ")"
	}
	if c.Why != "" {
		return fmt.Sprintf("rule %s: counters of %s start empty: %s", c.Rule, limit, c.Why)
	}
	return fmt.Sprintf("rule %s: %s continues from %s, which also applies for %s", c.Rule, limit, c.Was, c.For)
}

// MarshalJSON implements json.Marshaler; For is in seconds.
func (c Change) MarshalJSON() ([]byte, error) {
	type plain Change
	return json.Marshal(struct {
		plain
		For float64 `json:"for_seconds,omitempty"`
	}{plain(c), c.For.Seconds()})
}

// Compare returns the counters that do not simply continue when set replaces old. Counters continue
// for a limit of the same rule, `per`, algorithm and period, whatever its numbers; sliding_log and
// sub_windows count as one algorithm here.
func Compare(old, set *Set) []Change {
	return newSuccession(old.ledger(), set.ledger(), nil, set.config.now()).changes
}
