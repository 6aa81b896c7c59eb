// Package archivetest is the suite that every archive of rules passes, with the real server
// behind it. Start with [Run].
package archivetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// Server is what an archive is tested with.
type Server struct {
	// Open opens the same rule set again; the test closes it.
	Open func() source.Archive
	// Wipe removes everything that the server has.
	Wipe func()
	// Kill ends the server at once, and Start starts it again with what it has kept, if
	// Keeps says that it keeps anything.
	Kill, Start func()
	Keeps       bool
}

// Run wants an archive to be one. The server begins empty.
func Run(t *testing.T, s Server) {
	t.Run("empty", s.testEmpty)
	t.Run("publish", s.testPublish)
	t.Run("kinds of files", s.testFiles)
	t.Run("news", s.testNews)
	t.Run("race", s.testRace)
	t.Run("history", s.testHistory)
	t.Run("loss", s.testLoss)
	t.Run("outage", s.testOutage)
}

// timeout is for what takes no time on a machine that is not busy.
const timeout = time.Minute

func (s *Server) open(t *testing.T) source.Archive {
	t.Helper()
	a := s.Open()
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// bundle returns a rule set whose rule is called so.
func bundle(name string) *source.Bundle {
	return &source.Bundle{
		Edition: source.Edition{Hash: "hash of " + name, Author: "Ann <ann@example.com>", Reason: "because of\n" + name},
		Files:   map[string][]byte{"rules.yaml": fmt.Appendf(nil, "rules:\n  - name: %s\n    limit: 5/s\n", name)},
	}
}

// head returns the newest revision, "" if there is none.
func head(t *testing.T, a source.Archive) string {
	t.Helper()
	all, err := a.History(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return ""
	}
	return all[0].Revision
}

func publish(t *testing.T, a source.Archive, b *source.Bundle) string {
	t.Helper()
	revision, err := a.Publish(within(t), b, head(t, a))
	if err != nil || revision == "" {
		t.Fatalf("publish: %q, %v", revision, err)
	}
	return revision
}

// same wants got to be b under a revision.
func same(t *testing.T, got, b *source.Bundle, revision string) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no bundle")
	}
	if got.Revision != revision || got.Main != b.Main || !slices.Equal(got.Over, b.Over) || !maps.EqualFunc(got.Files, b.Files, bytes.Equal) {
		t.Errorf("%s with %d files, layers %q; want %s with %d files, layers %q", got.Revision, len(got.Files), got.Mains(), revision, len(b.Files), b.Mains())
	}
	if got.Hash != b.Hash || got.Author != b.Author || got.Reason != b.Reason || time.Since(got.At).Abs() > time.Hour {
		t.Errorf("got %+v, want %+v", got.Edition, b.Edition)
	}
}
