package offenders

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// By is what a list is ordered by.
type By string

// The lists of a rule.
const (
	Refused     By = "refused"      // those refused most often
	WouldRefuse By = "would_refuse" // the same, by a rule in shadow mode or a candidate limit
	Requests    By = "requests"     // those that ask most often
	Nearest     By = "nearest"      // those that used most of the limit, if at least half
)

var order = [kinds]By{Refused, WouldRefuse, Requests, Nearest}

// Query says what a [Report] is about. The zero value is about everything.
type Query struct {
	// Rule is the name of one; "" means all.
	Rule string `json:"rule,omitempty"`
	// By is one kind of list; "" means all.
	By By `json:"by,omitempty"`
	// Minutes is 1 or 10; 0 means both.
	Minutes int `json:"minutes,omitempty"`
	// Top is how many entries a list has at most; 0 means DefaultTop.
	Top int `json:"top,omitempty"`
	// Search is a part of a value that a subject must have, in any case; a value that is
	// shown as a hash is also found by the whole of it.
	Search string `json:"search,omitempty"`
}

const (
	DefaultTop = 10
	MaxTop     = 100
)

// Check reports what is wrong with a query.
func (q *Query) Check() error {
	switch {
	case q.Minutes != 0 && q.Minutes != 1 && q.Minutes != 10:
		return fmt.Errorf("minutes is %d; lists are kept of the last 1 and 10", q.Minutes)
	case q.Top < 0 || q.Top > MaxTop:
		return fmt.Errorf("top is %d; a list has 1 to %d entries", q.Top, MaxTop)
	}
	for _, by := range order {
		if q.By == "" || q.By == by {
			return nil
		}
	}
	return fmt.Errorf("by is %q; there are lists by %s, %s, %s and %s", q.By, Refused, WouldRefuse, Requests, Nearest)
}

func (q *Query) top() int {
	if q.Top == 0 {
		return DefaultTop
	}
	return q.Top
}

// Report is lists of offenders, of one process or of a fleet.
type Report struct {
	At time.Time `json:"at"`
	// Nodes are the names of those whose lists these are.
	Nodes []string `json:"nodes"`
	// Missing are those of the fleet that did not answer.
	Missing []string `json:"missing,omitempty"`
	// Lists are ordered by kind, then by what their first entry counts.
	Lists []List `json:"lists"`
	// LeftOut is how many lists found no room in an answer, LeftOutAtMost what a key in one of
	// them has at most.
	LeftOut       int   `json:"left_out,omitempty"`
	LeftOutAtMost int64 `json:"left_out_at_most,omitempty"`
}

// List is who did something most under a rule.
type List struct {
	Rule    string `json:"rule"`
	By      By     `json:"by"`
	Minutes int    `json:"minutes"`
	// Seconds is how long the time is that was counted: Minutes and the slice that has begun, or
	// less if the process was started since.
	Seconds float64 `json:"seconds"`
	Entries []Entry `json:"entries"`
	// OthersAtMost is what a key that is not listed may have counted, or as a share of the limit
	// used.
	OthersAtMost int64   `json:"others_at_most"`
	OthersUsed   float64 `json:"others_used,omitempty"`
	// Sampled: one decision in so many was looked at, at the busiest time; omitted if all were.
	Sampled int64 `json:"sampled,omitempty"`
}

// Entry is one who is counted.
type Entry struct {
	Subject []Part `json:"subject"`
	// Count is how often, as counted or estimated. The true number is between AtLeast and AtMost.
	Count   int64 `json:"count"`
	AtLeast int64 `json:"at_least"`
	AtMost  int64 `json:"at_most"`
	// Used is, by nearest, the largest share of a limit that was used after an admitted request.
	Used float64 `json:"used,omitempty"`
	// Limit is the one that it was last seen under.
	Limit string `json:"limit,omitempty"`
}

// text tells subjects apart.
func (e *Entry) text() string {
	var b strings.Builder
	for _, p := range e.Subject {
		fmt.Fprintf(&b, "%d:%s=%d:%s", len(p.Name), p.Name, len(p.Value), p.Value)
	}
	return b.String()
}

// MaxAnswer is how long the answer of a node to another may be.
const MaxAnswer = 64 << 10

// Answer answers a [Query] in JSON by a [Report] in JSON of at most [MaxAnswer] bytes: where that
// is too little, lists are shortened, and then some left out: by kind in the order of the [Report],
// of one kind those with the smallest counts.
func (of *Offenders) Answer(query []byte) []byte {
	var q Query
	if len(query) > 0 && json.Unmarshal(query, &q) != nil || q.Check() != nil {
		return nil
	}
	r := of.Snapshot(q)
	for {
		text, err := json.Marshal(r)
		if err != nil {
			return nil
		}
		if len(text) <= MaxAnswer {
			return text
		}
		r.shorten()
	}
}

// shortest is how many entries a list has at least when lists are shortened.
const shortest = 3

// shorten takes away some of what is in r: the lists without entries, or half of the entries of every list, or if
// there are few, half of the lists.
func (r *Report) shorten() {
	had := len(r.Lists)
	r.Lists = slices.DeleteFunc(r.Lists, func(l List) bool {
		if len(l.Entries) > 0 {
			return false
		}
		r.LeftOutAtMost = max(r.LeftOutAtMost, l.OthersAtMost) // [Merge] needs no more of it
		return true
	})
	if len(r.Lists) < had {
		return
	}
	longest := 0
	for i := range r.Lists {
		longest = max(longest, len(r.Lists[i].Entries))
	}
	if longest > shortest {
		for i := range r.Lists {
			r.Lists[i].cut(max(longest/2, shortest))
		}
		return
	}
	out := r.Lists[len(r.Lists)/2:]
	for i := range out {
		l := &out[i]
		l.cut(0)
		r.LeftOutAtMost = max(r.LeftOutAtMost, l.OthersAtMost)
	}
	r.LeftOut += len(out)
	r.Lists = r.Lists[:len(r.Lists)/2]
}

// cut keeps the first n entries.
func (l *List) cut(n int) {
	if n >= len(l.Entries) {
		return
	}
	for i := range l.Entries[n:] {
		e := &l.Entries[n+i]
		l.OthersAtMost, l.OthersUsed = max(l.OthersAtMost, e.AtMost), max(l.OthersUsed, e.Used)
	}
	l.Entries = l.Entries[:n]
}
