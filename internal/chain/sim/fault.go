package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the kind of a Fault.
type Kind uint8

// The kinds of faults.
const (
	Down     Kind = iota // Redis refuses connections, and comes back with its data
	Empty                // as Down, but it comes back without its data
	Failover             // as Down, but it comes back as a replica that lacks the latest data
	Stall                // Redis pauses; what was sent is decided afterwards
	Silent               // nothing that is sent arrives, either way
	Slow                 // every message takes longer
	Crash                // nodes end without a word, and start again
	kinds
)

var kindNames = [...]string{"down", "empty", "failover", "stall", "silent", "slow", "crash"}

func (k Kind) String() string { return kindNames[k] }

// Fault is something that is wrong for a while.
type Fault struct {
	Kind    Kind
	At, For time.Duration
	// Nodes that it affects; none means all. Faults of Redis itself affect all nodes.
	Nodes []int
	// Lag says what a Failover loses: the writes of this long before it.
	Lag time.Duration
	// Extra is, for Slow, how much longer every message takes.
	Extra time.Duration
}

func (f Fault) span() Span { return Span{f.At, f.At + f.For} }

func (f Fault) hits(node int) bool { return len(f.Nodes) == 0 || slices.Contains(f.Nodes, node) }

func (f Fault) String() string {
	text := fmt.Sprintf("%s %s+%s", f.Kind, f.At, f.For)
	if len(f.Nodes) > 0 {
		text += fmt.Sprintf(" of %d nodes", len(f.Nodes))
	}
	if f.Lag > 0 {
		text += fmt.Sprintf(" lag %s", f.Lag)
	}
	if f.Extra > 0 {
		text += fmt.Sprintf(" extra %s", f.Extra)
	}
	return text
}

// ParseFault reads a fault as String writes it: "silent 2s+5s", "failover 2s+1s lag 100ms",
// "slow 1s+3s extra 30ms". With "of 3 nodes" it hits only the first three.
func ParseFault(text string) (f Fault, err error) {
	words := strings.Fields(text)
	bad := func(what string) (Fault, error) {
		return f, fmt.Errorf("%s in %q: write for example \"silent 2s+5s of 3 nodes\"", what, text)
	}
	if len(words) < 2 {
		return bad("no time")
	}
	kind := slices.Index(kindNames[:], words[0])
	if kind < 0 {
		return bad("no fault is called " + strconv.Quote(words[0]) + "; there are " + strings.Join(kindNames[:], ", ") + ";")
	}
	f.Kind = Kind(kind)
	at, lasts, ok := strings.Cut(words[1], "+")
	if f.At, err = time.ParseDuration(at); err != nil || !ok || f.At < 0 {
		return bad("no time")
	}
	if f.For, err = time.ParseDuration(lasts); err != nil || f.For <= 0 {
		return bad("no duration")
	}
	for words = words[2:]; len(words) >= 2; words = words[2:] {
		switch words[0] {
		case "of":
			n, err := strconv.Atoi(words[1])
			if err != nil || n < 1 {
				return bad("no number of nodes")
			}
			for i := range n {
				f.Nodes = append(f.Nodes, i)
			}
			if len(words) > 2 && strings.HasPrefix(words[2], "node") {
				words = words[1:]
			}
		case "lag", "extra":
			d, err := time.ParseDuration(words[1])
			if err != nil || d < 0 {
				return bad("no duration")
			}
			if words[0] == "lag" {
				f.Lag = d
			} else {
				f.Extra = d
			}
		default:
			return bad("what is " + strconv.Quote(words[0]))
		}
	}
	if len(words) > 0 {
		return bad("what is " + strconv.Quote(words[0]))
	}
	return f, nil
}

// timeline says which faults there are at a time.
type timeline []Fault

// until returns when the last of the faults of a kind that hit a node at t is over, and whether
// there is such a fault.
func (tl timeline) until(k Kind, node int, t time.Duration) (end time.Duration, is bool) {
	for _, f := range tl {
		if f.Kind == k && f.span().has(t) && f.hits(node) {
			end, is = max(end, f.At+f.For), true
		}
	}
	return end, is
}

// down reports whether the server is gone at t: for all nodes, as its faults affect all.
func (tl timeline) down(t time.Duration) bool {
	return slices.ContainsFunc(tl, func(f Fault) bool { return f.Kind <= Failover && f.span().has(t) })
}

// extra returns how much longer a message of a node takes at t.
func (tl timeline) extra(node int, t time.Duration) (sum time.Duration) {
	for _, f := range tl {
		if f.Kind == Slow && f.span().has(t) && f.hits(node) {
			sum += f.Extra
		}
	}
	return sum
}
