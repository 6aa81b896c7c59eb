package algo

// Runs is a record of counts by stamp, oldest first, in a ring of packed words:
// what sliding_log and sub_windows remember of a key. It lives in memory that
// a store owns and may be moved; an empty one is all zeros.
//
//	[0] base, added to every stamp
//	[1] index of the oldest entry <<32 | entries in use
//	[2] sum of all counts
//	[3:] entries: (stamp-base) << bits | count
type Runs []uint64

// RunsHeader is how many words a record has besides its entries.
const RunsHeader = 3

func (r Runs) len() int     { return int(uint32(r[1])) }
func (r Runs) room() int    { return len(r) - RunsHeader }
func (r Runs) total() int64 { return int64(r[2]) }

func (r Runs) slot(i int) int {
	i += int(r[1] >> 32)
	if n := r.room(); i >= n {
		i -= n
	}
	return RunsHeader + i
}

// runsShape says how an entry is packed.
type runsShape struct {
	bits uint // of the count
}

func (p runsShape) at(r Runs, i int) (stamp, count int64) {
	w := r[r.slot(i)]
	return int64(r[0]) + int64(w>>p.bits), int64(w & (1<<p.bits - 1))
}

func (p runsShape) last(r Runs) (stamp int64, ok bool) {
	n := r.len()
	if n == 0 {
		return 0, false
	}
	stamp, _ = p.at(r, n-1)
	return stamp, true
}

// drop forgets the oldest entry.
func (p runsShape) drop(r Runs) {
	_, count := p.at(r, 0)
	r[2] -= uint64(count)
	n := r.len() - 1
	head := r[1]>>32 + 1
	if head == uint64(r.room()) || n == 0 {
		head = 0
	}
	r[1] = head<<32 | uint64(n)
}

// fits reports whether push(stamp) needs no larger record.
func (p runsShape) fits(r Runs, stamp int64) bool {
	if r.len() < r.room() {
		return true
	}
	last, ok := p.last(r)
	return ok && last == stamp
}

// push adds count at stamp, which is not before the last one; fits must hold.
func (p runsShape) push(r Runs, stamp, count int64) {
	n := r.len()
	if n == 0 {
		r[0], r[1] = uint64(stamp), 0
	}
	r[2] += uint64(count)
	if last, ok := p.last(r); ok && last == stamp {
		r[r.slot(n-1)] += uint64(count)
		return
	}
	if (stamp-int64(r[0]))>>(63-p.bits) != 0 {
		p.rebase(r)
	}
	r[1]++
	r[r.slot(n)] = uint64(stamp-int64(r[0]))<<p.bits | uint64(count)
}

// rebase makes the oldest stamp the base.
func (p runsShape) rebase(r Runs) {
	oldest, _ := p.at(r, 0)
	shift := uint64(oldest-int64(r[0])) << p.bits
	for i := range r.len() {
		r[r.slot(i)] -= shift
	}
	r[0] = uint64(oldest)
}

// takeBack forgets up to n of what is counted at stamp.
func (p runsShape) takeBack(r Runs, stamp, n int64) {
	for i := r.len() - 1; i >= 0; i-- {
		s, count := p.at(r, i)
		if s > stamp {
			continue
		}
		if s == stamp {
			n = min(n, count)
			r[r.slot(i)] -= uint64(n)
			r[2] -= uint64(n)
			if n == count {
				r.remove(i)
			}
		}
		return
	}
}

// remove closes the gap of entry i, whose count is zero: empty entries would
// pile up, and hold the key longer than what it used does.
func (r Runs) remove(i int) {
	n := r.len() - 1
	for ; i < n; i++ {
		r[r.slot(i)] = r[r.slot(i+1)]
	}
	r[1]--
}

// shift moves every stamp by d.
func (r Runs) shift(d int64) { r[0] = uint64(int64(r[0]) + d) }

// CopyTo moves the record into dst, which is zero and no smaller than needed.
func (r Runs) CopyTo(dst Runs) {
	n := r.len()
	dst[0], dst[1], dst[2] = r[0], uint64(n), r[2]
	for i := range n {
		dst[RunsHeader+i] = r[r.slot(i)]
	}
}

// Used is the sum of all counts held, expired ones included.
func (r Runs) Used() int64 { return r.total() }

// Entries is how many entries are in use.
func (r Runs) Entries() int { return r.len() }

// squeeze makes room by joining neighbours at the later stamp, or a single
// entry with the one that is to come at stamp.
func (p runsShape) squeeze(r Runs, stamp int64) {
	n := r.len()
	if n == 1 {
		count := r.total()
		p.drop(r)
		p.push(r, stamp, count)
		return
	}
	kept := 0
	for i := 0; i < n; i += 2 {
		stamp, count := p.at(r, i)
		if i+1 < n {
			next, more := p.at(r, i+1)
			stamp, count = next, count+more
		}
		r[r.slot(kept)] = uint64(stamp-int64(r[0]))<<p.bits | uint64(count)
		kept++
	}
	r[1] = r[1]>>32<<32 | uint64(kept)
}

// Whole reports whether the header of a record read from a file makes sense.
func (r Runs) Whole() bool {
	return len(r) >= RunsHeader && r.len() <= r.room() && (r[1]>>32 == 0 || int(r[1]>>32) < r.room())
}
