package httpsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/feed"
)

// parallel is how many files are fetched at once, and how many are watched with a long poll each.
const parallel = 8

// snapshot is what the server has: the main file and all that it needs.
type snapshot struct {
	revision string
	bundle   *source.Bundle

	mu    sync.Mutex
	files map[string]*file // under mu while goroutines fetch; includes missing files, which may appear
}

func (s *snapshot) file(name string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[name]
}

// again records that the server still has the same file, perhaps with another ETag.
func (s *snapshot) again(is, was *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is.refers = was.refers
	s.files[is.name] = is
}

// collect fetches the main file and all that it needs. Files that have not changed since was are
// not sent again; fresh was just fetched and is not requested again.
func (s *Source) collect(ctx context.Context, was *snapshot, fresh *file) (*snapshot, error) {
	if was == nil {
		was = &snapshot{}
	}
	is := &snapshot{files: make(map[string]*file)}
	wanted := []rulefile.Reference{{Name: s.main, Rules: true}}
	for len(wanted) > 0 {
		got, err := s.fetchAll(ctx, wanted, was.files, fresh)
		if err != nil {
			return nil, err
		}
		total := 0
		for _, f := range got {
			is.files[f.name] = f
		}
		for _, f := range is.files {
			total += len(f.text)
		}
		if total > s.bounds.all && !is.files[s.main].bundle {
			return nil, fmt.Errorf("the rules of %s are larger than %d MiB", s.name, s.bounds.all>>20)
		}
		if wanted, err = s.wanted(got, is.files); err != nil {
			return nil, err
		}
	}
	return is, s.bundle(is, was)
}

// wanted returns the files that got refers to and that were not fetched yet. Files outside of the
// folder are left out: the rules that name them are rejected, with the line.
func (s *Source) wanted(got []*file, have map[string]*file) (more []rulefile.Reference, err error) {
	for _, f := range got {
		for _, r := range f.refers {
			switch {
			case !feed.Inside(r.Name):
			case r.Pattern:
				return nil, fmt.Errorf("%s includes %s, and a web server does not list its files: name each file, or serve a bundle", s.name, r.Name)
			case have[r.Name] == nil && !slices.ContainsFunc(more, func(m rulefile.Reference) bool { return m.Name == r.Name }):
				more = append(more, r)
			}
		}
	}
	if len(have)+len(more) > source.MaxFiles {
		return nil, fmt.Errorf("the rules of %s have more than %d files", s.name, source.MaxFiles)
	}
	return more, nil
}

// fetchAll fetches files, up to parallel at a time.
func (s *Source) fetchAll(ctx context.Context, wanted []rulefile.Reference, was map[string]*file, fresh *file) ([]*file, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	got := make([]*file, len(wanted))
	places := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i, r := range wanted {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			f, err := fresh, error(nil)
			if f == nil || f.name != r.Name {
				f, _, err = s.fetch(ctx, r.Name, was[r.Name], 0)
			}
			if err != nil {
				cancel(err)
				return
			}
			if r.Rules && !f.bundle && f.refers == nil {
				f.refers = append([]rulefile.Reference{}, rulefile.Refers(f.name, f.text)...)
			}
			got[i] = f
		})
	}
	all.Wait()
	return got, context.Cause(ctx)
}

// bundle makes the bundle of a snapshot, and chooses the name of its revision.
func (s *Source) bundle(is, was *snapshot) error {
	main := is.files[s.main]
	if main.bundle {
		if before := was.files[s.main]; before != nil && before.bundle && before.sum == main.sum {
			is.revision, is.bundle = was.revision, was.bundle
			return nil
		}
		b, err := feed.Decode(main.text)
		if err != nil {
			return fmt.Errorf("get %s: %w", s.name, err)
		}
		sum := hex.EncodeToString(main.sum[:4])
		b.Revision = cmp.Or(b.Revision, unordered(cmp.Or(label(main), sum)))
		if was.bundle != nil && was.revision == b.Revision { // the same name for other files
			b.Revision += "-" + sum
		}
		is.revision, is.bundle = b.Revision, b
		return nil
	}
	b := &source.Bundle{Main: s.main, Files: make(map[string][]byte)}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(is.files)) {
		f := is.files[name]
		if f.missing {
			continue
		}
		b.Files[name] = f.text
		fmt.Fprintf(h, "%q %x\n", name, f.sum)
		if at, err := http.ParseTime(f.modified); err == nil && at.After(b.At) {
			b.At = at
		}
	}
	sum := hex.EncodeToString(h.Sum(nil)[:4])
	b.Revision = label(main)
	if b.Revision == "" || len(is.files) > 1 || strings.HasPrefix(main.etag, "W/") || main.etag == "" {
		b.Revision = strings.TrimPrefix(b.Revision+"-"+sum, "-")
	}
	b.Revision = unordered(b.Revision)
	if before := was.bundle; before != nil && same(before, b) {
		b.Revision = was.revision // the same files with another ETag
	} else if before != nil && was.revision == b.Revision { // other files with the same ETag
		b.Revision += "-" + sum
	}
	is.revision, is.bundle = b.Revision, b
	return nil
}

func same(a, b *source.Bundle) bool {
	return a.Main == b.Main && maps.EqualFunc(a.Files, b.Files, func(x, y []byte) bool { return string(x) == string(y) })
}

// counted matches revisions that look like increasing numbers.
var counted = regexp.MustCompile(`^\d+(-[0-9a-f]+)?$`)

// unordered returns a name that does not look like an increasing number, since ETags do not
// increase.
func unordered(name string) string {
	if counted.MatchString(name) {
		return `"` + name + `"`
	}
	return name
}

// label returns the server's name for a version of a file; "" if it has none.
func label(f *file) string {
	if f.etag != "" {
		return strings.Trim(strings.TrimPrefix(f.etag, "W/"), `"`)
	}
	if at, err := http.ParseTime(f.modified); err == nil {
		return at.UTC().Format(time.RFC3339)
	}
	return ""
}
