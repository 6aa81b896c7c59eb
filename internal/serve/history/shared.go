package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/rules/source"
)

// ShelfName is the name of the history in the store of a fleet. Rule sets that operators publish
// have names of another form.
const ShelfName = "in-force"

// Shared is a [Storage] on a shelf of the store, for all instances of a fleet.
type Shared struct{ shelf chain.Shelf }

// NewShared returns a Storage on a shelf.
func NewShared(shelf chain.Shelf) *Shared { return &Shared{shelf} }

// Bounds of the label of a set.
const (
	maxAuthor   = 256
	maxReason   = 2048
	maxRevision = 256
	maxAttempts = 10
)

// Put implements [Storage]. If several instances put the same set in force, the first adds it.
func (s *Shared) Put(ctx context.Context, b *source.Bundle) error {
	text, err := rulepack.Write(b.Files)
	if err != nil || len(b.Files) == 0 || len(text) > maxContents {
		text = nil // the history is useful even without the files
	}
	label, err := (&rulepack.Label{
		Digest: rulepack.Digest(b.Mains(), b.Files), Hash: b.Hash, Main: b.Main, Over: b.Over, At: b.At,
		Author: first(b.Author, maxAuthor), Reason: first(b.Reason, maxReason), Revision: first(b.Revision, maxRevision),
	}).String()
	if err != nil {
		return err
	}
	for range maxAttempts {
		versions, err := s.shelf.Versions(ctx)
		if err != nil {
			return err
		}
		if has(versions, b) {
			return nil
		}
		var newest chain.Version
		if len(versions) > 0 {
			newest = versions[0]
		}
		if _, err = s.shelf.Put(ctx, newest, label, text); !errors.Is(err, chain.ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("other instances wrote first, %d times", maxAttempts)
}

// has reports whether another instance has added b: only sets that came into force later are newer.
// An instance that is late must not add again what was replaced since.
func has(versions []chain.Version, b *source.Bundle) bool {
	for _, v := range versions {
		l, err := rulepack.ParseLabel(v.Label)
		if err == nil && l.Hash == b.Hash {
			return true
		}
		if err != nil || !l.At.After(b.At) {
			return false
		}
	}
	return false
}

// first returns the first bytes of text.
func first(text string, most int) string { return text[:min(len(text), most)] }

// History implements [Storage]. Entries of others under the same name are left out.
func (s *Shared) History(ctx context.Context) ([]source.Edition, error) {
	versions, err := s.shelf.Versions(ctx)
	if err != nil {
		return nil, err
	}
	var all []source.Edition
	for _, v := range versions {
		if l, err := rulepack.ParseLabel(v.Label); err == nil {
			all = append(all, editionOf(&l, v))
		}
	}
	slices.SortStableFunc(all, func(a, b source.Edition) int { return b.At.Compare(a.At) })
	return all, nil
}

func editionOf(l *rulepack.Label, v chain.Version) source.Edition {
	e := source.Edition{Revision: l.Revision, Hash: l.Hash, Author: l.Author, Reason: l.Reason, At: l.At}
	if e.At.IsZero() {
		e.At = v.At
	}
	return e
}

// Get implements [Storage].
func (s *Shared) Get(ctx context.Context, hash string) (*source.Bundle, error) {
	versions, err := s.shelf.Versions(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		l, err := rulepack.ParseLabel(v.Label)
		if err != nil || !Names(hash, l.Hash) {
			continue
		}
		if v.Size == 0 {
			return nil, errNoFiles
		}
		text, err := s.shelf.Read(ctx, v)
		switch {
		case errors.Is(err, chain.ErrNotKept):
			return nil, source.ErrNoRevision
		case err != nil:
			return nil, err
		}
		files, err := rulepack.Read(text)
		if err == nil && rulepack.Digest(l.Mains(), files) != l.Digest {
			err = errors.New("its files are not those that were in force")
		}
		if err != nil {
			return nil, err
		}
		return &source.Bundle{Edition: editionOf(&l, v), Main: l.Main, Over: l.Over, Files: files}, nil
	}
	return nil, source.ErrNoRevision
}
