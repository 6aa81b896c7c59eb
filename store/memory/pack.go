package memory

import (
	"math/bits"
	"slices"
	"sync"

	"tidegate.dev/tidegate/internal/algo"
)

// pageUse says which records of a page are in use, while a segment is rebuilt.
type pageUse struct {
	page  uint32
	class int
	live  uint64 // a bit per record in use
	kept  bool
}

var pageUsePool = sync.Pool{New: func() any {
	p := make([]pageUse, 0, 256)
	return &p
}}

// pack moves the records of all into as few pages as hold them, and gives the
// others back. The caller has taken all of the segment's keys out, so that nobody
// else looks at a record.
func (r *records) pack(all []entry) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	held := pageUsePool.Get().(*[]pageUse)
	defer pageUsePool.Put(held)
	pages := r.mark((*held)[:0], all)
	if *held = pages; !choose(pages) {
		return
	}
	r.free = [len(classWords)]handle{}
	r.pages = r.pages[:0]
	for _, p := range pages {
		if p.kept {
			r.relistLocked(p)
		}
	}
	for i := range all {
		h := all[i].cell.handle()
		if h == 0 || h.class() == paged || findPage(pages, h).kept {
			continue
		}
		all[i].cell.slow = uint64(r.moveLocked(h, r))
	}
	for _, p := range pages {
		if !p.kept {
			r.budget.drop(r.table, p.page)
		}
	}
}

// mark lists the pages by number, with what is in use of each.
func (r *records) mark(pages []pageUse, all []entry) []pageUse {
	for _, p := range r.pages {
		pages = append(pages, pageUse{page: p >> 4, class: int(p & 15)})
	}
	slices.SortFunc(pages, func(a, b pageUse) int { return int(a.page) - int(b.page) })
	for i := range all {
		if h := all[i].cell.handle(); h != 0 && h.class() != paged {
			findPage(pages, h).live |= 1 << (h.at() / classWords[h.class()])
		}
	}
	return pages
}

func findPage(pages []pageUse, h handle) *pageUse {
	lo, hi := 0, len(pages)-1
	for lo < hi {
		if mid := (lo + hi) / 2; pages[mid].page < h.page() {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return &pages[lo]
}

// choose marks the pages to keep: of each class the fullest ones, as many as hold all of
// its records. It reports whether any page is left over.
func choose(pages []pageUse) (leftOver bool) {
	var live, room [len(classWords)]int
	for i := range pages {
		live[pages[i].class] += bits.OnesCount64(pages[i].live)
	}
	for full := 48; full >= 0; full-- { // a page has at most 48 records
		for i := range pages {
			p := &pages[i]
			if bits.OnesCount64(p.live) == full && room[p.class] < live[p.class] {
				p.kept = true
				room[p.class] += algo.PageWords / classWords[p.class]
			}
		}
	}
	for i := range pages {
		leftOver = leftOver || !pages[i].kept
	}
	return leftOver
}

// relistLocked adds a page to the lists again: to that of pages, and its free records to
// theirs.
func (r *records) relistLocked(p pageUse) {
	r.pages = append(r.pages, p.page<<4|uint32(p.class))
	words := classWords[p.class]
	for i := range algo.PageWords / words {
		if p.live>>i&1 == 0 {
			r.freeLocked(newHandle(p.page, i*words, p.class))
		}
	}
}

// moveLocked copies a record to another of its size, which to has.
func (r *records) moveLocked(h handle, to *records) handle {
	moved := to.allocLocked(h.class())
	src, dst := r.budget.record(h), r.budget.record(moved)
	src.Copy(&dst)
	return moved
}

// moveTo moves the records of all to another segment, which has reserved the pages for
// them. The caller packs what is left.
func (r *records) moveTo(all []entry, to *records) {
	if r == nil {
		return
	}
	for i := range all {
		if h := all[i].cell.handle(); h != 0 && h.class() != paged {
			all[i].cell.slow = uint64(r.moveLocked(h, to))
			r.freeLocked(h)
		}
	}
}

// pagesFor returns how many pages the records of all fill, by class.
func pagesFor(all []entry) (pages [len(classWords)]int, sum int) {
	for i := range all {
		if h := all[i].cell.handle(); h != 0 && h.class() != paged {
			pages[h.class()]++
		}
	}
	for class, n := range pages {
		each := algo.PageWords / classWords[class]
		pages[class] = (n + each - 1) / each
		sum += pages[class]
	}
	return pages, sum
}
