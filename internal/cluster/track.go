package cluster

// tracks are the processors of Go's scheduler, or some of them each. Who is woken gets
// into the line of the processor that its waker runs on; from there others that have
// nothing to do take the first half. So those go first who fell asleep elsewhere, and
// most go on where their stacks are still at hand: to fetch one from another core takes
// about as long as all the rest.
const tracks = 8

// track is the one that the caller runs on, or is likely to.
func (s *Store) track() int {
	n := s.tracks.Get().(*int) // a pool has something for each processor
	defer s.tracks.Put(n)
	return *n
}
