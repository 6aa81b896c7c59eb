package algo

import "tidegate.dev/tidegate"

// A record of counts by stamp, oldest first, is a ring: what sliding_log and
// sub_windows remember of a key. It lives in memory that a store owns and may be
// moved; an empty one is all zeros.
//
//	[0] base, added to every stamp
//	[1] number of parts of the window <<48 | index of the oldest entry <<32 | entries in use
//	[2] sum of all counts
//	[3:] entries: (stamp-base) << bits | count
//
// A stamp is the number of a part or, if the number of parts is 0, an instant in µs. See [RunsLaw].

// RunsHeader is how many words a record has besides its entries.
const RunsHeader = 3

func (r *Record) len() int     { return int(uint32(r.Get(1))) }
func (r *Record) room() int    { return r.size - RunsHeader }
func (r *Record) total() int64 { return int64(r.Get(2)) }

// base may lie before the epoch: a word has 63 bits, the first is its sign.
func (r *Record) base() int64 { return int64(r.Get(0)<<1) >> 1 }

// Parts returns into how many parts the window is divided; 0 means that stamps are in µs.
func (r *Record) Parts() int64 { return int64(r.Get(1) >> 48) }

// SetParts sets into how many parts the window is divided.
func (r *Record) SetParts(n int64) { r.Set(1, uint64(n)<<48|r.Get(1)&(1<<48-1)) }

// setRing sets the index of the oldest entry and the number of entries.
func (r *Record) setRing(head, n uint64) { r.Set(1, r.Get(1)>>48<<48|head<<32|n) }

func (r *Record) head() uint64 { return r.Get(1) >> 32 & 0xffff }

func (r *Record) slot(i int) int {
	i += int(r.head())
	if n := r.room(); i >= n {
		i -= n
	}
	return RunsHeader + i
}

// runPacking says how an entry is packed.
type runPacking struct {
	bits uint // of the count
}

func (p runPacking) at(r Runs, i int) (stamp, count int64) {
	w := r.Get(r.slot(i))
	return p.stamp(r, w), int64(w & (1<<(p.bits&63) - 1))
}

// stamp returns the stamp of the entry w.
func (p runPacking) stamp(r Runs, w uint64) int64 { return r.base() + int64(w>>(p.bits&63)) }

func (p runPacking) last(r Runs) (stamp int64, ok bool) {
	n := r.len()
	if n == 0 {
		return 0, false
	}
	stamp, _ = p.at(r, n-1)
	return stamp, true
}

// drop forgets the oldest entry.
func (p runPacking) drop(r Runs) {
	_, count := p.at(r, 0)
	r.Set(2, r.Get(2)-uint64(count))
	n := r.len() - 1
	head := r.head() + 1
	if head == uint64(r.room()) || n == 0 {
		head = 0
	}
	r.setRing(head, uint64(n))
}

// fits reports whether push(stamp) needs no larger record.
func (p runPacking) fits(r Runs, stamp int64) bool {
	if r.len() < r.room() {
		return true
	}
	last, ok := p.last(r)
	return ok && last == stamp
}

// push adds count at stamp, which is not before the last one; fits must hold.
func (p runPacking) push(r Runs, stamp, count int64) {
	n := r.len()
	if n == 0 {
		r.Set(0, uint64(stamp))
		r.setRing(0, 0)
	}
	r.Set(2, r.Get(2)+uint64(count))
	if n > 0 {
		at := r.slot(n - 1)
		if last := r.Get(at); p.stamp(r, last) == stamp {
			r.Set(at, last+uint64(count))
			return
		}
	}
	if (stamp-r.base())>>(63-p.bits) != 0 {
		p.rebase(r)
	}
	r.Set(1, r.Get(1)+1)
	r.Set(r.slot(n), uint64(stamp-r.base())<<p.bits|uint64(count))
}

// rebase makes the oldest stamp the base.
func (p runPacking) rebase(r Runs) {
	oldest, _ := p.at(r, 0)
	shift := uint64(oldest-r.base()) << p.bits
	for i := range r.len() {
		at := r.slot(i)
		r.Set(at, r.Get(at)-shift)
	}
	r.Set(0, uint64(oldest))
}

// takeBack forgets up to n of what is counted at stamp.
func (p runPacking) takeBack(r Runs, stamp, n int64) {
	for i := r.len() - 1; i >= 0; i-- {
		s, count := p.at(r, i)
		if s > stamp {
			continue
		}
		if s == stamp {
			n = min(n, count)
			at := r.slot(i)
			r.Set(at, r.Get(at)-uint64(n))
			r.Set(2, r.Get(2)-uint64(n))
			if n == count {
				r.remove(i)
			}
		}
		return
	}
}

// takeLast forgets up to n of what was counted last.
func (p runPacking) takeLast(r Runs, n int64) {
	for n > 0 && r.len() > 0 {
		stamp, count := p.at(r, r.len()-1)
		p.takeBack(r, stamp, n)
		n -= min(n, count)
	}
}

// remove removes entry i, whose count is zero: empty entries would pile up, and keep
// the key for longer than its events count.
func (r *Record) remove(i int) {
	n := r.len() - 1
	for ; i < n; i++ {
		r.Set(r.slot(i), r.Get(r.slot(i+1)))
	}
	r.Set(1, r.Get(1)-1)
}

// Shift moves every stamp by d.
func (r *Record) Shift(d int64) { r.Set(0, uint64(r.base()+d)) }

// CopyTo moves the record into dst, which is zero and no smaller than needed.
func (r *Record) CopyTo(dst Runs) {
	n := r.len()
	dst.Set(0, uint64(r.base()))
	dst.Set(1, r.Get(1)>>48<<48|uint64(n))
	dst.Set(2, r.Get(2))
	if r.whole() && dst.whole() {
		ring, to := r.first[RunsHeader:], dst.first[RunsHeader:RunsHeader+n]
		copied := copy(to, ring[r.head():])
		copy(to[copied:], ring)
		return
	}
	for i := range n {
		dst.Set(RunsHeader+i, r.Get(r.slot(i)))
	}
}

// InOrder reports whether the ring does not wrap around: words can then be added at its end.
func (r *Record) InOrder() bool { return int(r.head())+r.len() <= r.room() }

// Used returns the sum of all counts held, expired ones included.
func (r *Record) Used() int64 { return r.total() }

// squeeze makes room in a record that may not grow: it divides the window into equal
// cells, so few that some entries become free, and counts all events of a cell at its
// last stamp. So no event counts for more than a cell too long, however often this is
// done. It reports false if the record is too small for that (see minSqueeze).
func (p runPacking) squeeze(r Runs, window int64) bool {
	room := r.room()
	if room < minSqueeze {
		return false
	}
	cells := int64(room - max(2, room/4))
	width := (window + cells - 1) / cells
	kept := 0
	var last int64 // cell
	var sum uint64 // counted in it so far
	for i := range r.len() {
		stamp, count := p.at(r, i)
		cell := stamp / width
		if kept == 0 || cell != last {
			kept, last, sum = kept+1, cell, 0
		}
		sum += uint64(count)
		r.Set(r.slot(kept-1), uint64(stamp-r.base())<<p.bits|sum)
	}
	r.setRing(r.head(), uint64(kept))
	return kept < room
}

// minSqueeze is the fewest entries of a record that can be squeezed: three cells, the
// one that is leaving the window and the one to come.
const minSqueeze = 5

// Valid reports whether the header of a record read from a file makes sense.
func (r *Record) Valid() bool {
	head := int(r.head())
	return r.size >= RunsHeader && r.len() <= r.room() && (head == 0 || head < r.room()) && r.Parts() <= tidegate.MaxParts
}
