package source

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules"
)

// stand is an Origin that does what a test tells it to.
type stand struct {
	name string

	mu      sync.Mutex
	newest  *Bundle
	sent    *Bundle // the last
	err     error   // what it answers instead
	deaf    bool    // it does not return, whatever becomes of its context
	calls   int
	using   int  // calls at the same time
	shared  bool // there were two
	closed  bool
	changed chan struct{}
}

func newStand(name string, b *Bundle) *stand {
	return &stand{name: name, newest: b, changed: make(chan struct{})}
}

func (s *stand) Name() string { return s.name }

func (s *stand) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// set changes what it does.
func (s *stand) set(how func(s *stand)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stand) publish(b *Bundle) { s.set(func(s *stand) { s.newest, s.err, s.deaf = b, nil, false }) }

func (s *stand) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *stand) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *stand) wasShared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared
}

func (s *stand) Next(ctx context.Context, have string) (*Bundle, error) {
	s.mu.Lock()
	s.calls++
	s.using++
	s.shared = s.shared || s.using > 1
	defer func() { s.using--; s.mu.Unlock() }()
	wait := time.NewTimer(time.Minute)
	defer wait.Stop()
	for {
		changed, deaf := s.changed, s.deaf
		switch {
		case deaf:
		case s.err != nil:
			return nil, s.err
		case s.newest != nil && (s.newest.Revision != have || s.newest != s.sent || s.newest.Revision == "again"):
			s.sent = s.newest
			return s.newest, nil
		}
		done, late := ctx.Done(), wait.C
		if deaf {
			done, late = nil, nil
		}
		s.mu.Unlock()
		select {
		case <-done:
			s.mu.Lock()
			return nil, ctx.Err()
		case <-late:
			s.mu.Lock()
			return nil, nil
		case <-changed:
			s.mu.Lock()
		}
	}
}

// bundle is a revision whose only rule admits n.
func bundle(revision string, n int) *Bundle {
	return &Bundle{Edition: Edition{Revision: revision, Author: "ann", Reason: "test " + revision}, Files: map[string][]byte{"rules.yaml": []byte(limit(n))}}
}

// published is bundle with the hour when it was.
func published(revision string, n, hour int) *Bundle {
	b := bundle(revision, n)
	b.At = time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC)
	return b
}

func text(revision, rules string) *Bundle {
	return &Bundle{Edition: Edition{Revision: revision}, Files: map[string][]byte{"rules.yaml": []byte(rules)}}
}

var errAway = errors.New("connection refused")

// silentPace asks the kernel nothing, for virtual time.
var silentPace = func() pace {
	p := usual
	p.silent = true
	return p
}()

// followed is a Watcher of layers under test.
type followed struct {
	watched
	reloaded []*rules.Set // under mu
	mu       sync.Mutex
}

// tryFollow follows layers without a log.
func tryFollow(t *testing.T, o Options, layers ...Layer) (*followed, error) {
	t.Helper()
	f := &followed{watched: watched{t: t}}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.OnReload = func(_, set *rules.Set) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reloads.Add(1)
		f.reloaded = append(f.reloaded, set)
	}
	o.OnError = func(error) { f.failures.Add(1) }
	w, err := follow(t.Context(), layers, o, silentPace)
	f.Watcher = w
	return f, err
}

func (f *followed) layer(i int) LayerStatus { return f.Status().Layers[i] }

// is checks what is in force of a layer.
func (f *followed) is(i int, revision string, admits int64) {
	f.t.Helper()
	if l := f.layer(i); l.Revision != revision || f.admits() != admits {
		f.t.Errorf("revision %q is in force and %d are admitted, want %q and %d; %+v", l.Revision, f.admits(), revision, admits, l)
	}
}

// revisions are 1 to n, each admitting ten times its number.
func revisions(n int) (all []*Bundle) {
	for i := range n {
		all = append(all, bundle(strconv.Itoa(i+1), 10*(i+1)))
	}
	return all
}
