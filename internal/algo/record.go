package algo

// Record is the memory that a store lends to the state of a key: a row of words,
// all zero at first, in one piece or in pages. The laws write numbers below 2^63
// into it. In memory every word written has its top bit set: a store may lend
// what was a table of slots before, and a reader that comes late has to find
// every one of them busy.
type Record struct {
	words []uint64 // all of it; or, if it has pages, the reference of each
	size  int      // in words
	pages Pages    // nil: it is in one piece
}

// Runs is a Record of counts by stamp, Leases one of slots in use.
type (
	Runs   = *Record
	Leases = *Record
)

// PageWords is how many words of a Record lie in one page.
const PageWords = 192

// Pages finds the page that a reference is to.
type Pages interface {
	Page(ref uint64) *[PageWords]uint64
}

// NewRecord returns an empty record of so many words.
func NewRecord(words int) *Record { return &Record{words: make([]uint64, words), size: words} }

// RecordOf returns the record that lies in words.
func RecordOf(words []uint64) Record { return Record{words: words, size: len(words)} }

// RecordIn returns the record whose pages are listed in refs.
func RecordIn(refs []uint64, pages Pages) Record {
	return Record{words: refs, size: len(refs) * PageWords, pages: pages}
}

const topBit = uint64(1) << 63

// Words is the size of the record.
func (r *Record) Words() int { return r.size }

// Get returns the word i as the laws see it.
func (r *Record) Get(i int) uint64 {
	if r.pages != nil {
		return r.far(i)
	}
	return r.words[i] &^ topBit
}

// Set replaces the word i.
func (r *Record) Set(i int, w uint64) {
	if r.pages != nil {
		r.setFar(i, w)
		return
	}
	r.words[i] = w | topBit
}

// far and setFar are Get and Set in pages, kept apart so that those are inlined.
//
//go:noinline
func (r *Record) far(i int) uint64 {
	return r.pages.Page(r.words[i/PageWords] &^ topBit)[i%PageWords] &^ topBit
}

//go:noinline
func (r *Record) setFar(i int, w uint64) {
	r.pages.Page(r.words[i/PageWords] &^ topBit)[i%PageWords] = w | topBit
}

// Copy copies all words into dst, which is no smaller.
func (r *Record) Copy(dst *Record) {
	for i := range r.size {
		dst.Set(i, r.Get(i))
	}
}

// Clear empties the record.
func (r *Record) Clear() {
	for i := range r.size {
		r.Set(i, 0)
	}
}
