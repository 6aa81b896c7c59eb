package dogma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/feed"
)

// parallel is how many files are fetched at once, and how many are watched with a request each.
const parallel = 8

// snapshot is the rule set as of a revision of the repository.
type snapshot struct {
	revision int
	bundle   *source.Bundle
	watch    []wanted // what to watch
}

// wanted is a file or a pattern that the rules need.
type wanted struct {
	name    string // as seen from the folder
	pattern bool
	rules   bool // it may need further files
	missing bool // the server does not have it
}

// errEmpty is the cause when a folder has nothing in it.
var errEmpty = errors.New("has no files")

// soon is how long to wait for something that is there already: since the first revision there is
// always a change, so the server answers at once.
const soon = time.Second

// current returns the current rule set.
func (s *Source) current(ctx context.Context) (*snapshot, error) {
	revision, err := s.newestRevision(ctx)
	if err != nil {
		return nil, err
	}
	is, err := s.collect(ctx, revision)
	if err != nil {
		return nil, err
	}
	// The server may answer with the revision that last changed one file. Another may have changed
	// later.
	if latest := s.latest(ctx, is); latest > revision {
		is, err = s.collect(ctx, latest)
	}
	if err == nil {
		s.describe(ctx, is)
	}
	return is, err
}

func (s *Source) newestRevision(ctx context.Context) (int, error) {
	at := s.folder + s.main
	if s.main == "" {
		at = s.folder + everything
	}
	w, _, err := s.watch(ctx, at, first, soon, true)
	if err != nil {
		return 0, err
	}
	if w != nil {
		return w.Revision, nil
	}
	revision, err := s.head(ctx)
	if err == nil && revision < 1 {
		err = fmt.Errorf("get %s of %s: the answer has no revision", at, s.name)
	}
	return revision, err
}

// head returns the newest revision of the repository; 0 if the server does not say.
func (s *Source) head(ctx context.Context) (int, error) {
	if s.main != "" {
		e, err := s.get(ctx, s.folder+s.main, newest)
		if err != nil {
			return 0, err
		}
		return e.Revision, nil
	}
	all, err := s.find(ctx, s.folder+everything, newest)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("%s %w", s.name, errEmpty)
	}
	return all[0].Revision, nil
}

// latest returns the highest revision that the server names for the files of a snapshot; files
// without an answer are watched anyway.
func (s *Source) latest(ctx context.Context, is *snapshot) int {
	watch := is.toWatch()
	found := make([]int, len(watch))
	var all sync.WaitGroup
	for i, f := range watch {
		if f.missing || f.name == s.main || f.name == everything && s.main == "" {
			continue
		}
		all.Go(func() {
			if w, _, err := s.watch(ctx, s.folder+f.name, first, soon, true); err == nil && w != nil {
				found[i] = w.Revision
			}
		})
	}
	all.Wait()
	return slices.Max(found)
}

// everything is the pattern of all files of the folder.
const everything = "**"

// toWatch returns the files to watch, or a pattern for all of them if they are many.
func (is *snapshot) toWatch() []wanted {
	if len(is.watch) <= parallel {
		return is.watch
	}
	return []wanted{{name: everything, pattern: true}}
}

// collect fetches all files as of a revision.
func (s *Source) collect(ctx context.Context, revision int) (*snapshot, error) {
	c := &collector{s: s, revision: revision, files: make(map[string][]byte)}
	next := []wanted{{name: s.main, rules: true}}
	if s.main == "" {
		next = []wanted{{name: everything, pattern: true}}
	}
	for len(next) > 0 {
		if err := c.fetch(ctx, next); err != nil {
			return nil, err
		}
		next = c.more()
		if len(c.seen)+len(next) > source.MaxFiles || len(c.files) > source.MaxFiles {
			return nil, fmt.Errorf("the rules of %s have more than %d files", s.name, source.MaxFiles)
		}
	}
	total := 0
	for _, text := range c.files {
		total += len(text)
	}
	if total > source.MaxTotal {
		return nil, fmt.Errorf("the rules of %s are larger than %d MiB", s.name, source.MaxTotal>>20)
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("%s %w", s.name, errEmpty)
	}
	is := &snapshot{revision: revision, watch: c.seen}
	is.bundle = &source.Bundle{Edition: source.Edition{Revision: strconv.Itoa(revision)}, Main: s.main, Files: c.files}
	return is, nil
}

// collector fetches the files of one revision.
type collector struct {
	s        *Source
	revision int

	mu    sync.Mutex
	files map[string][]byte // under mu, as all that follows
	seen  []wanted
	refer []rulefile.Reference
	err   error
}

// fetch fetches files, up to parallel at a time.
func (c *collector) fetch(ctx context.Context, next []wanted) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	places := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for _, w := range next {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if err := c.fetchOne(ctx, w); err != nil {
				c.mu.Lock()
				if c.err == nil {
					c.err = err
				}
				c.mu.Unlock()
				cancel()
			}
		})
	}
	all.Wait()
	return c.err
}

func (c *collector) fetchOne(ctx context.Context, w wanted) error {
	var entries []*entry
	at := c.s.folder + w.name
	if w.pattern && strings.ContainsAny(w.name, "?[") {
		return fmt.Errorf("the rules of %s include %s: of the characters of patterns, Central Dogma knows only *", c.s.name, w.name)
	}
	if w.pattern {
		found, err := c.s.find(ctx, at, c.revision)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(found, func(e *entry) bool { return e == nil || e.Type == "DIRECTORY" })
	} else {
		e, err := c.s.get(ctx, at, c.revision)
		switch {
		case missing(err) && w.name != c.s.main:
			w.missing = true
		case err != nil:
			return err
		case e.Type == "DIRECTORY":
			return fmt.Errorf("%s is a folder of %s: end its path in a slash", at, c.s.name)
		default:
			e.Path = at
			entries = []*entry{e}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, w)
	for _, e := range entries {
		name, below := strings.CutPrefix(e.Path, c.s.folder)
		if !below || !feed.Inside(name) {
			return fmt.Errorf("%s was asked for %s and answered with %q", c.s.name, at, e.Path)
		}
		text, err := e.text()
		if err != nil {
			return fmt.Errorf("%s: %w", c.s.name, err)
		}
		if len(text) > source.MaxFile {
			return fmt.Errorf("%s of %s is larger than %d MiB", e.Path, c.s.name, source.MaxFile>>20)
		}
		if c.files[name] == nil && w.rules {
			c.refer = append(c.refer, rulefile.Refers(name, text)...)
		}
		c.files[name] = text
	}
	return nil
}

// more returns the files that are referred to and were not fetched yet. Files outside of the folder
// are left out: the rules that name them are rejected, with the line.
func (c *collector) more() (next []wanted) {
	for _, r := range c.refer {
		is := func(w wanted) bool { return w.name == r.Name }
		if c.files[r.Name] == nil && feed.Inside(r.Name) && !slices.ContainsFunc(c.seen, is) && !slices.ContainsFunc(next, is) {
			next = append(next, wanted{name: r.Name, pattern: r.Pattern, rules: r.Rules})
		}
	}
	c.refer = nil
	return next
}
