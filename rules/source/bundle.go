package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

// Bundle is one revision of a rule set: all of its files, as a source had them at one moment. It
// must not be changed once it was passed on.
type Bundle struct {
	Edition
	// Main is the rule file to begin with or, with a slash at the end, a folder whose rule files
	// are read; "" means the top folder.
	Main string
	// Over are further rule files or folders, each a layer over those before it. A source that
	// joins several layers itself sets it.
	Over []string
	// Files by their path within the source, with slashes: rule files, lists, included files.
	Files map[string][]byte
}

// Edition is what a source says about a revision.
type Edition struct {
	// Revision is what the source calls it: a number, an ETag. Equal revisions of one source
	// have equal files. Plain decimal numbers, such as 7 or 7-0a1b2c3d, count up: a lower one is
	// taken for an old copy of the source, unless it was published later.
	Revision string
	// Hash is the hash of the files, as in [Status] and [Bundle.Sum].
	Hash string
	// Author and Reason are who published it and why, and At is when; they are empty where
	// the source does not know.
	Author, Reason string
	At             time.Time
}

// Origin is a place other than a disk that rules come from, such as a config server. Only one
// goroutine uses it at a time.
type Origin interface {
	// Name is what people call it: an address without secrets.
	Name() string
	// Next waits for a bundle with another revision than have, and returns the newest; "" means
	// that the caller has none. It returns nil without an error if there was none for a while, to
	// show that the origin is still reachable. It returns soon after ctx has ended.
	Next(ctx context.Context, have string) (*Bundle, error)
	// Close ends connections.
	Close() error
}

// Answering is an Origin that cannot wait for a change, and asks several times before Next returns.
type Answering interface {
	Origin
	// Answered returns when the origin last answered that there is nothing new; zero means not yet.
	// It may be called while Next runs.
	Answered() time.Time
}

// Archive is an Origin in which rules can be published, and which keeps earlier revisions.
type Archive interface {
	Origin
	// Publish makes b the newest revision, if the newest is still head, and returns its name.
	// Otherwise the error is [ErrConflict].
	Publish(ctx context.Context, b *Bundle, head string) (revision string, err error)
	// History returns the revisions that are kept, the newest first.
	History(ctx context.Context) ([]Edition, error)
	// Get returns a revision; the error is [ErrNoRevision] if it is not kept.
	Get(ctx context.Context, revision string) (*Bundle, error)
}

var (
	// ErrConflict is returned by [Archive.Publish] if another publisher was faster.
	ErrConflict = errors.New("somebody else has published meanwhile")
	// ErrNoRevision is returned by [Archive.Get] for a revision that is not kept.
	ErrNoRevision = errors.New("there is no such revision")
)

// Kept is how many revisions an [Archive] keeps.
const Kept = 20

// Bounds of a Bundle.
const (
	MaxFile  = 16 << 20 // bytes of one file
	MaxTotal = 64 << 20 // bytes of all files together
	MaxFiles = 1000
)

// Check returns why b cannot be used: it has no files, too many or too large ones, or one whose
// name is not a path within the source.
func (b *Bundle) Check() error {
	switch {
	case len(b.Files) == 0:
		return errors.New("there are no files")
	case len(b.Files) > MaxFiles:
		return fmt.Errorf("there are %d files, and at most %d are read", len(b.Files), MaxFiles)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		switch n := len(b.Files[name]); {
		case !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }):
			return fmt.Errorf("%q is not the path of a file within the source", name)
		case n > MaxFile:
			return fmt.Errorf("%s has %d bytes, and at most %d MiB are read", name, n, MaxFile>>20)
		default:
			total += n
		}
	}
	if total > MaxTotal {
		return fmt.Errorf("the files have %d bytes together, and at most %d MiB are read", total, MaxTotal>>20)
	}
	for _, main := range b.Mains() {
		if main != "" && !fs.ValidPath(strings.TrimSuffix(main, "/")) {
			return fmt.Errorf("%q is not the path of a rule file within the source", main)
		}
	}
	return nil
}

// Mains returns Main and Over: one name for each layer of b.
func (b *Bundle) Mains() []string { return append([]string{b.Main}, b.Over...) }

// Layers returns the layers of b for package rules, which calls them name in problems.
func (b *Bundle) Layers(name string) []rules.Layer {
	var all []rules.Layer
	for _, main := range b.Mains() {
		all = append(all, rules.Layer{Name: name, Main: main, Files: b.Files})
	}
	return all
}

// Sum returns the hash of the files that the rules of b are read from, as in [Status]: the same
// files in a folder have the same hash.
func (b *Bundle) Sum() string {
	layers := b.Layers("bundle")
	f, _ := rulefile.Join(layers, rulefile.Options{})
	if f == nil {
		return sum(nil)
	}
	return joined(b.sums(layers, f.Layers))
}

// sums returns the hashes of the files with these names, by layer.
func (b *Bundle) sums(layers []rulefile.Layer, names [][]string) []string {
	all := make([]string, len(layers))
	for i := range layers {
		l := &layers[i]
		base := path.Dir(l.Main)
		if strings.HasSuffix(l.Main, "/") {
			base = path.Clean(l.Main)
		}
		var files []hashed
		for _, name := range names[i] {
			p := l.Path(name)
			if text, ok := b.Files[p]; ok {
				files = append(files, newHashed(base, p, text))
			}
		}
		all[i] = sum(files)
	}
	return all
}

// sameFiles reports whether both have the same files, whatever their revisions are called.
func (b *Bundle) sameFiles(other *Bundle) bool {
	return b != nil && other != nil && b.Main == other.Main && slices.Equal(b.Over, other.Over) && maps.EqualFunc(b.Files, other.Files, bytes.Equal)
}

// olderThan reports whether b is an earlier state of the source than other: its number is lower,
// and it was not published later.
func (b *Bundle) olderThan(other *Bundle) bool {
	is, counts := number(b.Revision)
	was, counted := number(other.Revision)
	return counts && counted && is < was && !b.At.After(other.At)
}

// numbered matches a revision that is a number, optionally with part of a hash after it.
var numbered = regexp.MustCompile(`^(\d+)(-[0-9a-f]{8})?$`)

// number returns the number of a revision, and whether it has one.
func number(revision string) (n uint64, ok bool) {
	m := numbered.FindStringSubmatch(revision)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return n, err == nil
}
