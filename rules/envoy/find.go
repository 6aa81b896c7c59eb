package envoy

import (
	"cmp"
	"slices"
)

// Entry is a part of a descriptor, such as {"remote_address", "192.0.2.7"}.
type Entry struct{ Key, Value string }

// level is the descriptors of one list in a file, by key.
type level map[string]*named

// named are the descriptors of a level with one key.
type named struct {
	exact map[string]*node
	stars []star // in the order of the files
	any   *node  // without a value
}

// star is a descriptor whose value is a pattern.
type star struct {
	pattern pattern
	node    *node
}

// node is a descriptor of a file.
type node struct {
	rule *Rule // nil means nothing is limited here
	next level
}

// Find returns the rule of a descriptor, nil if nothing limits it. Each entry is matched by
// a descriptor with its key and value, else by the first pattern that matches the value, else
// by a descriptor with the key alone. What is matched is not reconsidered when a later entry
// finds nothing, and only a rule as deep as the descriptor applies. Find does not allocate.
func (d *Domain) Find(entries []Entry) *Rule {
	if d == nil || len(entries) == 0 {
		return nil
	}
	at := d.level
	for i := range entries {
		n := at.match(&entries[i])
		if n == nil {
			return nil
		}
		if i == len(entries)-1 {
			return n.rule
		}
		at = n.next
	}
	return nil
}

// FindAny is Find for entries that have no order, such as those of a bucket id: it returns a rule
// that some order of them finds, and leaves them in that order. Of several orders it is the one
// whose keys come first by the alphabet.
func (d *Domain) FindAny(entries []Entry) *Rule {
	if d == nil {
		return nil
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
	return d.level.findAny(entries, 0)
}

// findAny finds a rule for entries of which the first `matched` are already matched.
func (l level) findAny(entries []Entry, matched int) *Rule {
	for i := matched; i < len(entries); i++ {
		n := l.match(&entries[i])
		if n == nil {
			continue
		}
		e := entries[i]
		copy(entries[matched+1:i+1], entries[matched:i])
		entries[matched] = e
		rule := n.rule
		if matched < len(entries)-1 {
			rule = n.next.findAny(entries, matched+1)
		}
		if rule != nil {
			return rule
		}
		copy(entries[matched:i], entries[matched+1:i+1])
		entries[i] = e
	}
	return nil
}

func (l level) match(e *Entry) *node {
	of := l[e.Key]
	if of == nil {
		return nil
	}
	if n := of.exact[e.Value]; n != nil {
		return n
	}
	for i := range of.stars {
		if of.stars[i].pattern.matches(e.Value) {
			return of.stars[i].node
		}
	}
	return of.any
}
