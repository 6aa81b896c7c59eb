package rulefile

import "tidegate.dev/tidegate/internal/lang/diag"

// Holding is a word that asks for a request to be held back for a while.
type Holding struct {
	Rule Word
	Word string // queue, defer or concurrency
	Pos  diag.Pos
}

// NeedsHolding lists what a front end that cannot hold a request must warn of.
func (f *File) NeedsHolding() []Holding {
	var all []Holding
	for _, r := range f.Rules {
		terms := []Terms{r.Terms}
		for _, b := range r.For {
			terms = append(terms, b.Terms)
		}
		for _, t := range terms {
			if t.Queue != nil {
				all = append(all, Holding{r.Name, "queue", t.Queue.Pos})
			}
			if t.Concurrency != nil {
				all = append(all, Holding{r.Name, "concurrency", t.Concurrency.Pos})
			}
		}
		if r.Defer != nil {
			all = append(all, Holding{r.Name, "defer", r.Defer.Pos})
		}
	}
	return all
}
