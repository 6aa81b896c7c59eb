package algo

// Record is memory of a store for the state of a key: words, all zero at first, in one
// piece or in pages. The laws write numbers below 2^63 into it. In memory every written
// word has its top bit set, because the same memory may have been a table of slots
// before: a late reader of slots must find each of them busy.
type Record struct {
	first []uint64 // all of it, or its first page
	size  int      // in words
	list  []uint64 // the numbers of its pages, if it is not in one piece
	pages []*Page  // of the store, by number
}

// Runs is a Record of counts by stamp, Leases one of slots in use.
type (
	Runs   = *Record
	Leases = *Record
)

// PageWords is how many words of a Record lie in one page.
const PageWords = 192

// Page is a piece of memory of a store.
type Page [PageWords]uint64

// NewRecord returns an empty record of so many words.
func NewRecord(words int) *Record { return &Record{first: make([]uint64, words), size: words} }

// SetWords makes r the record stored in words.
func (r *Record) SetWords(words []uint64) { r.first, r.size = words, len(words) }

// SetPages makes r the record stored in the pages whose numbers are in list.
func (r *Record) SetPages(list []uint64, pages []*Page) {
	r.first, r.size = pages[list[0]&^topBit][:], len(list)*PageWords
	r.list, r.pages = list, pages
}

const topBit = uint64(1) << 63

// Words returns the size of the record.
func (r *Record) Words() int { return r.size }

// Get returns the word i as the laws see it.
func (r *Record) Get(i int) uint64 {
	if i < len(r.first) {
		return r.first[i] &^ topBit
	}
	return *r.farWord(i) &^ topBit
}

// Set replaces the word i.
func (r *Record) Set(i int, w uint64) {
	if i < len(r.first) {
		r.first[i] = w | topBit
		return
	}
	*r.farWord(i) = w | topBit
}

// farWord returns the word i, which is not in the first page.
func (r *Record) farWord(i int) *uint64 {
	return &r.pages[r.list[i/PageWords]&^topBit][i%PageWords]
}

// Copy copies all words into dst, which is no smaller.
func (r *Record) Copy(dst *Record) {
	if r.whole() && dst.whole() {
		copy(dst.first, r.first)
		return
	}
	for i := range r.size {
		dst.Set(i, r.Get(i))
	}
}

// whole reports whether the record is in one piece.
func (r *Record) whole() bool { return r.size == len(r.first) }

// Empty makes r an empty record. It clears only the header: what is behind that is always written
// before it is read.
func (r *Record) Empty() {
	for i := range RunsHeader {
		r.Set(i, 0)
	}
}
