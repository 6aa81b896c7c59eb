package board

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Node is an instance of the fleet.
type Node struct {
	ID   string `json:"id"` // differs in every process
	Name string `json:"name,omitempty"`
}

// String returns the name that operators know, or the ID if there is none.
func (n Node) String() string { return cmp.Or(n.Name, n.ID) }

// Member is an instance that shares the counters.
type Member struct {
	Node
	// Follows is true if it looks at the board. Older versions and some programs do not.
	Follows bool
}

// Absent is an instance that has not answered, or lacks a record, and the reason.
type Absent struct {
	Node
	Why string `json:"why"`
}

// Reach says where an order is in force. It always is in this instance.
type Reach struct {
	// Kept says where the order survives a restart: "store" (as far as the store is durable),
	// "file", both, or neither: then it is gone when this process ends.
	Kept []string `json:"kept"`
	// Has lists the instances that have it, this one included.
	Has []Node `json:"has"`
	// Lacks lists the instances that do not have it, or are not known to.
	Lacks []Absent `json:"lacks,omitempty"`
	// Why it is not kept everywhere, or not shared yet; "" if all is well.
	Why string `json:"why,omitempty"`
}

// Everywhere reports whether all instances have the order, and it is kept as intended.
func (r *Reach) Everywhere() bool { return len(r.Lacks) == 0 && r.Why == "" }

// String returns a sentence for an operator.
func (r *Reach) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "holds on %d of %d instances", len(r.Has), len(r.Has)+len(r.Lacks))
	switch {
	case len(r.Kept) == 0:
		b.WriteString(", until this process ends")
	default:
		b.WriteString(", kept in the " + strings.Join(r.Kept, " and the "))
	}
	for _, a := range r.Lacks {
		fmt.Fprintf(&b, "; not yet on %s: %s", a.Node, a.Why)
	}
	if r.Why != "" {
		b.WriteString("; " + r.Why)
	}
	return b.String()
}

// Places where records are kept.
const (
	InStore = "store"
	InFile  = "file"
)

// hereOnly returns the reach of an order before it is posted.
func (b *Board) hereOnly(fileErr error) Reach {
	r := Reach{Has: []Node{b.o.Self}, Kept: []string{}}
	switch {
	case fileErr != nil:
		r.Why = fileErr.Error()
	case b.o.File != "":
		r.Kept = []string{InFile}
	}
	return r
}

// topicHas is the topic of the question whether an instance has a record.
const topicHas = "board"

// confirm adds to reach which other instances have r. postErr says why r could not be posted; nil
// means that it was.
func (b *Board) confirm(ctx context.Context, reach *Reach, r Record, postErr error) {
	if postErr != nil {
		reach.Why = strings.TrimPrefix(reach.Why+"; ", "; ") + "it is passed on when the store answers: " + postErr.Error()
		for _, m := range b.knownMembers() {
			if m.ID != b.o.Self.ID {
				reach.Lacks = append(reach.Lacks, Absent{m.Node, "the store does not answer"})
			}
		}
		return
	}
	reach.Kept = append([]string{InStore}, reach.Kept...)
	if b.o.Confirm < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Confirm)
	defer cancel()
	answers, missing, err := b.Ask(ctx, topicHas, fmt.Appendf(nil, "%s %d %d", r.ID, r.Rev, r.by))
	for node, answer := range answers {
		switch {
		case node.ID == b.o.Self.ID:
		case string(answer) == "1":
			reach.Has = append(reach.Has, node)
		default:
			reach.Lacks = append(reach.Lacks, Absent{node, "it has not taken it over yet"})
		}
	}
	reach.Lacks = append(reach.Lacks, missing...)
	if err != nil && reach.Why == "" {
		reach.Why = "it is not known who has it: " + err.Error()
	}
	slices.SortFunc(reach.Has[1:], func(a, b Node) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	slices.SortFunc(reach.Lacks, func(a, b Absent) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
}

// has answers the question that confirm asks.
func (b *Board) has(question []byte) []byte {
	fields := strings.Fields(string(question))
	if len(fields) != 3 {
		return []byte("0")
	}
	rev, err1 := strconv.ParseInt(fields[1], 10, 64)
	by, err2 := strconv.ParseUint(fields[2], 10, 32)
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := &Record{Rev: rev, by: uint32(by)}
	if r := b.records[fields[0]]; err1 == nil && err2 == nil && r != nil && (r.same(asked) || r.newer(asked)) {
		return []byte("1")
	}
	return []byte("0")
}
