package node

import (
	"hash/maphash"
	"slices"
	"unsafe"

	"tidegate.dev/tidegate"
)

// traits are what may be done about a vector of checks besides asking for it.
type traits uint8

const (
	// coalescible: requests for it may share a call.
	coalescible traits = 1 << iota
	// remembered: a remembered refusal may answer it. That goes for the vector; which
	// of its checks can refuse so is said by deniable.
	remembered
	// slotted: it takes slots, which have a name.
	slotted
)

// traitsOf tells the traits of checks. It is not ok if every store would return an error
// for them, and rightly so.
func traitsOf(checks []tidegate.Check) (t traits, ok bool) {
	t, peeks, none := coalescible|remembered, true, false
	for i := range checks {
		c := &checks[i]
		l := c.Limit
		if l == nil || c.Cost < 0 || c.Floor < 0 || l.Algorithm == tidegate.Deny || l.Identity() == "" {
			return 0, false
		}
		// A refusal that counts has to be seen, and each copy has its own turn.
		if l.CountRejected || c.MaxWait > 0 {
			none = true
		}
		if c.Cost > 0 {
			peeks = false
		}
		if c.Advisory || l.Algorithm == tidegate.Concurrency { // told, and named, one by one
			t &^= coalescible
		}
		if l.Algorithm == tidegate.Concurrency && c.Cost > 0 {
			t |= slotted
		}
		if !c.Advisory && c.Cost > l.Capacity()-c.Floor { // which is what it has to be told
			t &^= remembered
		}
		if l.Terms != nil {
			if l.Terms.Handling.NoCoalesce {
				t &^= coalescible
			}
			if l.Terms.Handling.Queue != nil { // by which limit it is refused decides whether it waits
				t &^= remembered
			}
		}
	}
	if peeks || none {
		return t & slotted, true
	}
	return t, true
}

// hash is equal for vectors that are.
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

// same reports whether a and b ask for the same. MaxWait and Advisory are not set in
// what goes together.
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

// vector is checks with their keys in memory of its own: those of a caller are used
// again as soon as it has an answer.
type vector struct {
	checks []tidegate.Check
	keys   []byte
}

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

func (v *vector) clear() {
	clear(v.checks)
	if cap(v.keys) > maxKept {
		v.keys = nil
	}
}
