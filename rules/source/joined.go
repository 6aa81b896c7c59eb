package source

import (
	"cmp"
	"fmt"
)

// Joined returns the rules in force as one Bundle, for followers of this process. Several layers
// are put in a folder each, and stay layers of the Bundle. The error says why other machines cannot
// use them.
func (w *Watcher) Joined() (*Bundle, error) {
	all, err := w.Bundles()
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		b := *all[0]
		b.Revision = cmp.Or(b.Revision, b.Hash)
		return &b, nil
	}
	b := &Bundle{Files: make(map[string][]byte)}
	var mains []string
	for i, l := range all {
		folder := fmt.Sprintf("%d/", i+1)
		for name, text := range l.Files {
			b.Files[folder+name] = text
		}
		for _, main := range l.Mains() {
			mains = append(mains, folder+main)
		}
		if l.At.After(b.At) {
			b.At, b.Author, b.Reason = l.At, l.Author, l.Reason
		}
	}
	b.Main, b.Over = mains[0], mains[1:]
	if err := b.Check(); err != nil {
		return nil, fmt.Errorf("the rules of all layers together cannot be handed on: %w", err)
	}
	b.Hash = b.Sum()
	b.Revision = b.Hash
	return b, nil
}
