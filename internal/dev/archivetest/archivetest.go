// Package archivetest is the suite that every archive of rules passes, with the real server
// behind it. Start with [Run].
package archivetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
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

// bundle is a rule set whose rule is called so.
func bundle(name string) *source.Bundle {
	return &source.Bundle{
		Edition: source.Edition{Hash: "hash of " + name, Author: "Ann <ann@example.com>", Reason: "because of\n" + name},
		Files:   map[string][]byte{"rules.yaml": fmt.Appendf(nil, "rules:\n  - name: %s\n    limit: 5/s\n", name)},
	}
}

// head is the newest revision, "" if there is none.
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

func (s *Server) testEmpty(t *testing.T) {
	a := s.open(t)
	if b, err := a.Next(within(t), ""); err == nil || !strings.Contains(err.Error(), a.Name()) || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("%+v, %v; want an error that says so", b, err)
	}
	if h := head(t, a); h != "" {
		t.Errorf("the newest is %q", h)
	}
	for _, revision := range []string{"", "1", "1-12345678", "-1", "x"} {
		if b, err := a.Get(within(t), revision); !errors.Is(err, source.ErrNoRevision) {
			t.Errorf("revision %q: %+v, %v", revision, b, err)
		}
	}
	if _, err := a.Publish(within(t), bundle("a"), "1-12345678"); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of what is not there: %v", err)
	}
	if _, err := a.Publish(within(t), &source.Bundle{}, ""); err == nil {
		t.Error("no files are published")
	}
}

func (s *Server) testPublish(t *testing.T) {
	a := s.open(t)
	first, second := bundle("first"), bundle("second")
	second.Main = "rules.yaml"
	was := head(t, a)
	one := publish(t, a, first)
	got, err := a.Next(within(t), was)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, first, one)
	if _, err := a.Publish(within(t), second, was); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of one that is not the newest: %v", err)
	}
	two := publish(t, a, second)
	if one == two {
		t.Error("both have one name")
	}
	for _, have := range []string{"", one, "1-12345678", "other"} {
		if got, err = a.Next(within(t), have); err != nil {
			t.Fatal(err)
		}
		same(t, got, second, two)
	}
	for revision, b := range map[string]*source.Bundle{one: first, two: second} {
		number, _, _ := strings.Cut(revision, "-")
		for _, name := range []string{revision, number} {
			if got, err = a.Get(within(t), name); err != nil {
				t.Fatalf("revision %s: %v", name, err)
			}
			same(t, got, b, revision)
		}
	}
	// The main part of a set may be a folder.
	folder := &source.Bundle{Main: "edge/rules/", Files: map[string][]byte{"edge/rules/a.yaml": []byte("rules: []"), "edge/list": nil}}
	in := publish(t, a, folder)
	if got, err = a.Next(within(t), two); err != nil {
		t.Fatal(err)
	}
	same(t, got, folder, in)
	// It may have several layers. Another order of them is another set.
	texts := map[string][]byte{"1/rules.yaml": []byte("rules: []"), "2/a.yaml": []byte("rules: []"), "2/b.yaml": []byte("rules: []")}
	for _, mains := range [][]string{{"1/rules.yaml", "2/"}, {"2/", "1/rules.yaml"}, {"", "2/b.yaml", "2/"}} {
		layers := &source.Bundle{Main: mains[0], Over: mains[1:], Files: texts}
		is := publish(t, a, layers)
		if got, err = a.Next(within(t), in); err != nil {
			t.Fatal(err)
		}
		same(t, got, layers, is)
		if got, err = a.Get(within(t), is); err != nil {
			t.Fatal(err)
		}
		same(t, got, layers, is)
		in = is
	}
	// What is published again is another revision, and the same files.
	three := publish(t, a, first)
	if got, err = a.Next(within(t), two); err != nil {
		t.Fatal(err)
	}
	same(t, got, first, three)
	for _, wrong := range []*source.Bundle{
		{Edition: source.Edition{Reason: strings.Repeat("x", 10_000)}, Files: first.Files},
		{Files: map[string][]byte{"../rules.yaml": nil}},
	} {
		if r, err := a.Publish(within(t), wrong, three); err == nil {
			t.Errorf("%+v is published as %s", wrong.Edition, r)
		}
	}
}

func (s *Server) testFiles(t *testing.T) {
	a := s.open(t)
	for _, files := range []map[string][]byte{
		{"rules.yaml": {}},
		{"rules.yaml": []byte("rules: []"), "lists/deep/er/list.txt": {0, 1, 0xff, '\r', '\n', '\n'}, "ä ö.yaml": []byte("ü\n")},
		{"rules.yaml": bytes.Repeat([]byte("# ööö 0123456789\n"), 40_000)},
		many(90),
		many(100),
		many(1),
	} {
		b := &source.Bundle{Files: files}
		revision := publish(t, a, b)
		got, err := a.Next(within(t), "")
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, b, revision)
		if got, err = a.Get(within(t), revision); err != nil {
			t.Fatal(err)
		}
		same(t, got, b, revision)
	}
}

// many are so many files.
func many(n int) map[string][]byte {
	files := make(map[string][]byte)
	for i := range n {
		files[fmt.Sprintf("f%d.yaml", i)] = fmt.Appendf(nil, "%d of %d", i, n)
	}
	return files
}

// testNews wants those who wait to be told, and to end when they are to.
func (s *Server) testNews(t *testing.T) {
	a := s.open(t)
	have := publish(t, a, bundle("news"))
	if b, err := a.Next(within(t), have); b != nil || err != nil {
		t.Fatalf("nothing is new: %+v, %v; want neither a bundle nor an error", b, err)
	}
	for i := range 3 {
		waits := s.open(t)
		type answer struct {
			b   *source.Bundle
			err error
		}
		answers := make(chan answer, 1)
		ctx := within(t)
		go func() {
			for {
				b, err := waits.Next(ctx, have)
				if b != nil || err != nil {
					answers <- answer{b, err}
					return
				}
			}
		}()
		time.Sleep(time.Duration(i) * 200 * time.Millisecond) // it may wait by then or not
		next := bundle(fmt.Sprint("news ", i))
		have = publish(t, a, next)
		got := <-answers
		if got.err != nil {
			t.Fatal(got.err)
		}
		same(t, got.b, next, have)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := a.Next(ctx, have); err != nil {
				ended <- err
				return
			}
		}
	}()
	time.Sleep(100 * time.Millisecond)
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(timeout):
		t.Fatal("it does not end with its context")
	}
}

// testRace lets many publish on top of one revision: one of them does.
func (s *Server) testRace(t *testing.T) {
	a := s.open(t)
	top := publish(t, a, bundle("race"))
	ctx := within(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 6 {
		b, mine := bundle(fmt.Sprint("racer ", i)), s.open(t)
		all.Go(func() {
			revision, err := mine.Publish(ctx, b, top)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, revision)
			} else if !errors.Is(err, source.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || head(t, a) != won[0] {
		t.Errorf("%q have published, and the newest is %s", won, head(t, a))
	}
}

func (s *Server) testHistory(t *testing.T) {
	a := s.open(t)
	var revisions []string
	for i := range source.Kept + 5 {
		revisions = append(revisions, publish(t, a, bundle(fmt.Sprint("number ", i))))
	}
	all, err := a.History(within(t))
	if err != nil || len(all) != source.Kept {
		t.Fatalf("%d revisions, %v", len(all), err)
	}
	for i, revision := range revisions {
		b, err := a.Get(within(t), revision)
		if i < 5 {
			if !errors.Is(err, source.ErrNoRevision) {
				t.Errorf("%s, which is old: %+v, %v", revision, b, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		same(t, b, bundle(fmt.Sprint("number ", i)), revision)
		if e := all[len(revisions)-1-i]; e != b.Edition {
			t.Errorf("the history has %+v, want %+v", e, b.Edition)
		}
	}
}

// testLoss wants a server that has lost everything to be neither unchanged nor empty.
func (s *Server) testLoss(t *testing.T) {
	a := s.open(t)
	have := publish(t, a, bundle("lost"))
	if b, err := a.Next(within(t), have); b != nil || err != nil {
		t.Fatal(b, err)
	}
	s.Wipe()
	if b, err := a.Next(within(t), have); err == nil || !strings.Contains(err.Error(), "no rules") {
		t.Errorf("after a loss: %+v, %v", b, err)
	}
	if _, err := a.Publish(within(t), bundle("x"), have); !errors.Is(err, source.ErrConflict) {
		t.Errorf("on top of what is lost: %v", err)
	}
	// As many revisions as were lost, with other files: one of them has the old number.
	seen := map[string]bool{have: true}
	for i := range 40 {
		next := bundle(fmt.Sprint("after the loss ", i))
		revision := publish(t, a, next)
		if seen[revision] {
			t.Fatalf("%s was another one before", revision)
		}
		seen[revision] = true
		got, err := a.Next(within(t), have)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, next, revision)
	}
}

// testOutage wants an error while the server is away, and nothing else to happen.
func (s *Server) testOutage(t *testing.T) {
	a := s.open(t)
	b := bundle("outage")
	have := publish(t, a, b)
	if got, err := a.Next(within(t), have); got != nil || err != nil {
		t.Fatal(got, err)
	}
	s.Kill()
	fails := func(what string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, source.ErrConflict) || errors.Is(err, source.ErrNoRevision) {
			t.Errorf("%s without the server: %v", what, err)
		}
	}
	_, err := a.Next(within(t), have)
	fails("Next", err)
	_, err = a.Publish(within(t), b, have)
	fails("Publish", err)
	_, err = a.History(within(t))
	fails("History", err)
	_, err = a.Get(within(t), have)
	fails("Get", err)
	fresh := s.open(t)
	_, err = fresh.Next(within(t), "")
	fails("Next of another one", err)
	s.Start()
	for _, a := range []source.Archive{a, fresh} {
		for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
			got, err := a.Next(within(t), have)
			if s.Keeps && got == nil && err == nil || !s.Keeps && err != nil && strings.Contains(err.Error(), "no rules") {
				break
			}
			if got != nil || time.Now().After(end) {
				t.Fatalf("after the outage: %+v, %v", got, err)
			}
		}
	}
	next := bundle("after the outage")
	revision := publish(t, fresh, next)
	got, err := a.Next(within(t), have)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, next, revision)
}
