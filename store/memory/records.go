package memory

import (
	"slices"
	"sync"
	"unsafe"

	"tidegate.dev/tidegate/internal/algo"
)

// records holds the states of a segment's keys that do not fit a slot: logs,
// parts and leases. They are cut from pages of one size each; one that is larger
// than a page has pages of its own. A record belongs to the slot that holds its
// handle, and only the owner of that slot looks at it. When the segment is
// rebuilt, records are moved together and pages given back (see pack.go), so that
// free space in one size never blocks another.
type records struct {
	table  *table
	budget *budget

	mu    sync.Mutex
	free  [len(classWords)]handle // under mu: the first of each size, which names the next
	pages []uint32                // under mu: page number <<4 | class
}

// handle names a record: page number | offset 8 | class 4; 0 is none.
type handle uint64

// classWords are the sizes of records. All divide a page.
var classWords = [...]int{4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192}

const (
	paged        = 15                 // class of a record in pages; its handle names the list of them
	maxPages     = algo.PageWords - 1 // in a list, which starts with how many
	recordsBytes = 200                // of records, roughly
)

func newHandle(page uint32, at, class int) handle {
	return handle(page)<<12 | handle(at)<<4 | handle(class)
}

func (h handle) page() uint32 { return uint32(h >> 12) }
func (h handle) at() int      { return int(h >> 4 & 255) }
func (h handle) class() int   { return int(h & 15) }

// record returns what h names.
func (b *budget) record(h handle) (r algo.Record) {
	b.loadRecord(&r, h)
	return r
}

// loadRecord is record into r, which saves a copy.
func (b *budget) loadRecord(r *algo.Record, h handle) {
	p := b.page(h.page())
	if h.class() == paged {
		r.SetPages(p[1:1+p[0]&^busyBit], *b.all.Load())
		return
	}
	// To slice p would look at its first word, for nil, and miss the cache there as well.
	r.SetWords(unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(p), h.at()*8)), classWords[h.class()]))
}

// touch starts fetching the record that h names.
func (b *budget) touch(h handle) {
	if h != 0 {
		prefetch(unsafe.Add(unsafe.Pointer(b.page(h.page())), h.at()*8))
	}
}

// alloc returns an empty record of at least words, or 0 at the memory bound.
func (r *records) alloc(words int) handle {
	class := slices.IndexFunc(classWords[:], func(n int) bool { return words <= n })
	if class < 0 {
		return r.allocPages((words + algo.PageWords - 1) / algo.PageWords)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.allocLocked(class)
}

func (r *records) allocLocked(class int) handle {
	if r.free[class] == 0 {
		page := r.budget.take(r.table)
		if page == 0 {
			return 0
		}
		r.addLocked(page, class)
	}
	h := r.free[class]
	rec := r.budget.record(h)
	r.free[class] = handle(rec.Get(0))
	rec.Empty()
	return h
}

// addLocked cuts a page into records of a class.
func (r *records) addLocked(page uint32, class int) {
	r.budget.words(page)
	r.pages = append(r.pages, page<<4|uint32(class))
	for at := 0; at < algo.PageWords; at += classWords[class] {
		r.freeLocked(newHandle(page, at, class))
	}
}

func (r *records) freeLocked(h handle) {
	rec := r.budget.record(h)
	rec.Set(0, uint64(r.free[h.class()]))
	r.free[h.class()] = h
}

// allocPages returns a record of n pages and the list of them.
func (r *records) allocPages(n int) handle {
	if n > maxPages {
		return 0
	}
	number := r.budget.take(r.table)
	if number == 0 {
		return 0
	}
	r.budget.words(number)
	h := newHandle(number, 0, paged)
	if r.addPages(h, n) < n {
		r.release(h)
		return 0
	}
	return h
}

// addPages adds up to n empty pages to the record h, and returns how many.
func (r *records) addPages(h handle, n int) (added int) {
	list := r.budget.page(h.page())
	for added < n && list[0]&^busyBit < maxPages {
		page := r.budget.take(r.table)
		if page == 0 {
			break
		}
		r.budget.words(page)
		list[0]++
		list[list[0]&^busyBit] = busyBit | uint64(page)
		added++
	}
	return added
}

// lengthen adds words to a record that has pages of its own, or fewer if there is not the memory. It
// reports false if there is none.
func (r *records) lengthen(h handle, words int) bool {
	return r.addPages(h, (words+algo.PageWords-1)/algo.PageWords) > 0
}

// release gives a record back.
func (r *records) release(h handle) {
	switch {
	case h == 0:
	case h.class() == paged:
		list := r.budget.page(h.page())
		for _, page := range list[1 : 1+list[0]&^busyBit] {
			r.budget.drop(r.table, uint32(page))
		}
		r.budget.drop(r.table, h.page())
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.freeLocked(h)
	}
}
