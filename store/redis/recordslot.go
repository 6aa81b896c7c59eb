package redis

import (
	"strconv"
	"sync"

	"tidegate.dev/tidegate"
)

// The record of a reservation lives beside the counters that it was charged to, in the same
// slot of a cluster or of shards, so that one script reaches both. Its name must not show whose they
// are: a receipt has the number of the slot, and the record's key has a tag that any key
// in that slot could have.

// slotTags has a tag for each slot: the least number that falls into it.
var slotTags = sync.OnceValue(func() *[slotCount]string {
	var tags [slotCount]string
	for found, i := 0, uint64(0); found < slotCount; i++ {
		tag := strconv.FormatUint(i, 10)
		if at := &tags[slotOf(tag)]; *at == "" {
			*at = tag
			found++
		}
	}
	return &tags
})

// recordID returns the name of a record: the handle and, where counters live apart, a tag for its
// slot.
func (s *Store) recordID(h tidegate.Handle, slot uint16) string {
	if !s.apart() {
		return h.String()
	}
	return h.String() + "{" + slotTags()[slot%slotCount] + "}"
}

// recordSlot returns the slot for the record of a charge.
func (s *Store) recordSlot(pending []*pendingCheck) uint16 {
	if !s.apart() || len(pending) == 0 {
		return 0
	}
	return slotOf(tagOf(pending[0].key))
}
