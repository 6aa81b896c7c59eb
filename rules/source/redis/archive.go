package redis

import (
	"context"
	"errors"
	"fmt"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/lang/rulepack"
	"tidegate.dev/tidegate/rules/source"
)

// edition returns the edition of a version, and the first files of its layers.
func edition(v chain.Version) (e source.Edition, mains []string, err error) {
	l, err := rulepack.ParseLabel(v.Label)
	if err != nil {
		return e, nil, err
	}
	return source.Edition{
		Revision: rulepack.Revision(v.Number, l.Digest), Hash: l.Hash,
		Author: l.Author, Reason: l.Reason, At: v.At,
	}, l.Mains(), nil
}

// of adds to err which version it is about.
func (a *Archive) of(v chain.Version, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, version %d: %w", a.name, v.Number, err)
}

func (a *Archive) read(ctx context.Context, v chain.Version, e source.Edition, mains []string) (*source.Bundle, error) {
	text, err := a.shelf.Read(ctx, v)
	if err != nil {
		return nil, err
	}
	files, err := rulepack.Read(text)
	if err != nil {
		return nil, a.of(v, err)
	}
	if e.Revision != rulepack.Revision(v.Number, rulepack.Digest(mains, files)) {
		return nil, a.of(v, errors.New("its files are not those that were published"))
	}
	return &source.Bundle{Edition: e, Main: mains[0], Over: mains[1:], Files: files}, nil
}

// Publish implements [source.Archive].
func (a *Archive) Publish(ctx context.Context, b *source.Bundle, head string) (string, error) {
	if len(b.Files) == 0 {
		return "", errors.New("a rule set without files cannot be published")
	}
	text, err := rulepack.Write(b.Files)
	if err != nil {
		return "", err
	}
	label, err := (&rulepack.Label{
		Digest: rulepack.Digest(b.Mains(), b.Files), Hash: b.Hash, Main: b.Main, Over: b.Over, Author: b.Author, Reason: b.Reason,
	}).String()
	if err != nil {
		return "", err
	}
	after, err := a.shelf.Newest(ctx)
	if err != nil {
		return "", err
	}
	now := ""
	if after.Number > 0 {
		e, _, err := edition(after)
		if err != nil {
			return "", a.of(after, err)
		}
		now = e.Revision
	}
	if now != head {
		return "", source.ErrConflict
	}
	v, err := a.shelf.Put(ctx, after, label, text)
	switch {
	case errors.Is(err, chain.ErrMoved):
		return "", source.ErrConflict
	case err != nil:
		return "", err
	}
	e, _, err := edition(v)
	return e.Revision, a.of(v, err)
}

// History implements [source.Archive].
func (a *Archive) History(ctx context.Context) ([]source.Edition, error) {
	all, err := a.shelf.Versions(ctx)
	if err != nil {
		return nil, err
	}
	var editions []source.Edition
	for _, v := range all {
		e, _, err := edition(v)
		if err != nil {
			return nil, a.of(v, err)
		}
		editions = append(editions, e)
	}
	return editions, nil
}

// Get implements [source.Archive]. The number alone identifies a revision.
func (a *Archive) Get(ctx context.Context, revision string) (*source.Bundle, error) {
	all, err := a.shelf.Versions(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		e, mains, err := edition(v)
		if err != nil || !rulepack.Means(revision, e.Revision) {
			continue
		}
		b, err := a.read(ctx, v, e, mains)
		if errors.Is(err, chain.ErrNotKept) {
			err = source.ErrNoRevision
		}
		return b, err
	}
	return nil, source.ErrNoRevision
}
