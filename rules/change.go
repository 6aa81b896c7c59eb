package rules

import (
	"encoding/json"
	"fmt"
	"time"
)

// Change is what becomes of the counters of a limit when one Set takes the place of
// another, where they do not simply continue.
type Change struct {
	Rule  string `json:"rule"`
	Part  string `json:"part,omitempty"` // block, nominal or candidate; "" for the limit itself
	Limit string `json:"limit"`          // 100/1m0s token_bucket
	// Was is the limit in whose place it is; "" when there was none.
	Was string `json:"was,omitempty"`
	// For is how long requests are held to the counters of that one as well, so that
	// nobody is refilled; 0 when the counters start empty.
	For time.Duration `json:"-"`
	// Why the counters start empty.
	Why string `json:"why,omitempty"`
	// Gone is a tier, the row of a table or a branch that is no longer there, Who the requests that it
	// was for. Limit is what they are held to now, Was what they were held to; Counted says
	// where.
	Gone    string `json:"gone,omitempty"`
	Who     string `json:"who,omitempty"`
	Counted string `json:"counted,omitempty"`
}

// String tells the change in a sentence.
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

// Compare tells which counters do not simply continue when set takes the place of old. A limit
// of the same rule, `per`, algorithm and period goes on, whatever its numbers; sliding_log
// and sub_windows are one algorithm here.
func Compare(old, set *Set) []Change {
	return newSuccession(old.ledger(), set.ledger(), nil, set.config.now()).changes
}
