package cluster

// tracks are the processors of Go's scheduler, or some of them each. Who is woken gets
// into the line of the processor that its waker runs on; from there others that have
// nothing to do take the first half. So those go first who fell asleep elsewhere, and
// each is likely to go on where its stack is still at hand. Without that, every other
// one goes to another core, which takes longer than all the rest it does.
const tracks = 8

// track is the one that the caller runs on, or is likely to.
func (s *Store) track() int {
	n := s.tracks.Get().(*int) // a pool has something for each processor
	defer s.tracks.Put(n)
	return *n
}
