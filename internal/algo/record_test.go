package algo

import "testing"

// A record in pages is the same as one in one piece, and in memory every word
// written has its top bit set.
func TestRecordInPages(t *testing.T) {
	pages := []*Page{new(Page), nil, new(Page), new(Page)}
	var paged Record
	paged.SetPages([]uint64{2, 0, 3 | topBit}, pages)
	whole := NewRecord(3 * PageWords)
	law := LogLaw{Events: 500, Brim: 500, Period: 100}
	if paged.Words() != whole.Words() {
		t.Fatalf("%d words, want %d", paged.Words(), whole.Words())
	}
	for i := range int64(5000) {
		now := i / 7 * Micro
		a, okA := law.Take(&paged, now, one)
		b, okB := law.Take(whole, now, one)
		if a != b || okA != okB {
			t.Fatalf("take %d: %+v in pages, %+v in one piece", i, a, b)
		}
	}
	for i := range whole.Words() {
		w := pages[[]int{2, 0, 3}[i/PageWords]][i%PageWords]
		if paged.Get(i) != whole.Get(i) || w != 0 && w&topBit == 0 {
			t.Fatalf("word %d: %#x in memory, %d, want %d", i, w, paged.Get(i), whole.Get(i))
		}
	}
}
