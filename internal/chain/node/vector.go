package node

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"tidegate.dev/tidegate"
)

// traits say how a vector of checks may be treated.
type traits uint8

const (
	// coalescible: requests for the vector may share a call.
	coalescible traits = 1 << iota
	// remembered: a remembered refusal may answer the vector. deniable says of which of
	// its checks refusals are remembered.
	remembered
	// slotted: it takes slots, so each call needs a name for them.
	slotted
)

// traitsOf returns the traits of checks. It is not ok if checks are not valid, so that every
// store would return an error.
func traitsOf(checks []tidegate.Check) (t traits, ok bool) {
	t, peeks, none := coalescible|remembered, true, false
	for i := range checks {
		c := &checks[i]
		l := c.Limit
		if l == nil || c.Cost < 0 || c.Floor < 0 || l.Algorithm == tidegate.Deny || l.Identity() == "" {
			return 0, false
		}
		// The store must see a refusal that counts, and each copy has its own turn.
		if l.CountRejected || c.MaxWait > 0 {
			none = true
		}
		if c.Cost > 0 {
			peeks = false
		}
		if c.Advisory || l.Algorithm == tidegate.Concurrency { // Over, and the name of a slot, are per request
			t &^= coalescible
		}
		if l.Algorithm == tidegate.Concurrency && c.Cost > 0 {
			t |= slotted
		}
		if !c.Advisory && c.Cost > l.Capacity()-c.Floor { // the store has to say that it can never fit
			t &^= remembered
		}
		if l.Terms != nil {
			if l.Terms.Handling.NoCoalesce {
				t &^= coalescible
			}
			if l.Terms.Handling.Queue != nil { // whether it waits depends on which limit refuses it
				t &^= remembered
			}
		}
	}
	if peeks || none {
		return t & slotted, true
	}
	return t, true
}

// hash returns the same number for equal vectors.
func (n *Node) hash(checks []tidegate.Check) uint64 {
	var sum uint64
	for i := range checks {
		c := &checks[i]
		sum = (sum ^ maphash.String(n.seed, c.Key)) * 0x9E3779B97F4A7C15
		sum ^= sum >> 32
		sum = (sum ^ uint64(uintptr(unsafe.Pointer(c.Limit))) ^ uint64(c.Cost)<<48 ^ uint64(c.Floor)<<40) * 0xD6E8FEB86659FD93
		sum ^= sum >> 32
	}
	return sum
}

// same reports whether a and b ask for the same. Coalescible vectors have neither MaxWait nor
// Advisory set.
func same(a, b []tidegate.Check) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Limit != y.Limit || x.Cost != y.Cost || x.Floor != y.Floor || x.Estimate != y.Estimate || x.Key != y.Key {
			return false
		}
	}
	return true
}

// vector is checks with a copy of their keys: a caller reuses its own as soon as it has an
// answer.
type vector struct {
	checks []tidegate.Check
	keys   []byte
}

// copy makes v a copy of checks.
func (v *vector) copy(checks []tidegate.Check) {
	size := 0
	for i := range checks {
		size += len(checks[i].Key)
	}
	v.checks = append(v.checks[:0], checks...)
	v.keys = slices.Grow(v.keys[:0], size)
	for i := range v.checks {
		from := len(v.keys)
		v.keys = append(v.keys, checks[i].Key...)
		key := v.keys[from:]
		v.checks[i].Key = unsafe.String(unsafe.SliceData(key), len(key))
	}
}

// maxKept bounds the memory of a vector that is kept to be used again.
const maxKept = 4 << 10

// clear empties v, and keeps its memory to be used again, unless that is much.
func (v *vector) clear() {
	clear(v.checks)
	if cap(v.keys) > maxKept {
		v.keys = nil
	}
}
