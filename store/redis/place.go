package redis

import (
	"strconv"
	"sync"

	"tidegate.dev/tidegate"
)

// The record of a reservation lives beside the counters that it was charged to, in the same
// slot of a cluster, so that one script reaches both. Its name must not tell whose they
// are: a receipt says the number of the slot, and the record's key has a tag that any key
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

// recordID is what a record is known by: the handle, and in a cluster a tag for its place.
func (s *Store) recordID(h tidegate.Handle, place uint16) string {
	if !s.cluster {
		return h.String()
	}
	return h.String() + "{" + slotTags()[place%slotCount] + "}"
}

// placeOf is where the record of a charge to plans is kept.
func (s *Store) placeOf(plans []*plan) uint16 {
	if !s.cluster || len(plans) == 0 {
		return 0
	}
	return slotOf(tagOf(plans[0].key))
}
