package httpsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
)

// quick is a pace for tests that wait for a poll.
var quick = pace{poll: 20 * time.Millisecond, settle: time.Millisecond, spread: time.Millisecond, doubt: time.Hour, perMiB: time.Millisecond}

// small are bounds that a test is soon beyond.
var small = bounds{file: 1 << 20, all: 4 << 20, bytes: 8 << 20}

// site is a web server with files.
type site struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	files   map[string]string
	tag     func(text string, h http.Header) // how it marks a version; nil means not at all
	holds   bool                             // it does long polls
	hook    func(w http.ResponseWriter, r *http.Request) bool
	changed chan struct{}
	asked   []*http.Request
}

func newSite(t *testing.T, files map[string]string) *site {
	s := &site{t: t, files: files, tag: strong, changed: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// The ways in which servers mark versions.
func strong(text string, h http.Header) { h.Set("ETag", `"`+short(text)+`"`) }
func weak(text string, h http.Header)   { h.Set("ETag", `W/"`+short(text)+`"`) }
func dated(text string, h http.Header) {
	sum := sha256.Sum256([]byte(text))
	h.Set("Last-Modified", time.Date(2020, 1, 1, int(sum[0]), int(sum[1]), 0, 0, time.UTC).Format(http.TimeFormat))
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r)
	hook, holds := s.hook, s.holds
	s.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	over := time.After(time.Minute)
	for {
		s.mu.Lock()
		text, ok := s.files[r.URL.Path]
		changed := s.changed
		if s.tag != nil && ok {
			s.tag(text, w.Header())
		}
		s.mu.Unlock()
		same := ok && (w.Header().Get("ETag") != "" && r.Header.Get("If-None-Match") == w.Header().Get("ETag") ||
			w.Header().Get("ETag") == "" && w.Header().Get("Last-Modified") != "" && r.Header.Get("If-Modified-Since") == w.Header().Get("Last-Modified"))
		switch {
		case !ok:
			http.NotFound(w, r)
			return
		case !same:
			_, _ = w.Write([]byte(text))
			return
		case !holds || !strings.HasPrefix(r.Header.Get("Prefer"), "wait="):
			w.WriteHeader(http.StatusNotModified)
			return
		}
		select {
		case <-changed:
		case <-over:
			holds = false
		case <-r.Context().Done():
			return
		}
	}
}

func (s *site) setHook(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

func (s *site) set(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[name] = text; text == "" {
		delete(s.files, name)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// paths returns what was asked for, since the last call.
func (s *site) paths() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked {
		all = append(all, r.URL.Path)
	}
	s.asked = nil
	return all
}

func (s *site) source(path string, edit ...func(*Options)) *Source {
	s.t.Helper()
	return open(s.t, s.URL+path, edit...)
}

func open(t *testing.T, url string, edit ...func(*Options)) *Source {
	t.Helper()
	o := Options{URL: url, Wait: time.Minute}
	for _, f := range edit {
		f(&o)
	}
	is, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	is.pace, is.bounds = quick, small
	t.Cleanup(func() { _ = is.Close() })
	return is
}

func wait(d time.Duration) func(*Options) { return func(o *Options) { o.Wait = d } }

// next wants a bundle.
func next(t *testing.T, s *Source, have string) *source.Bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		b, err := s.Next(ctx, have)
		if err != nil {
			t.Fatal(err)
		}
		if b != nil {
			if b.Revision == have || b.Revision == "" {
				t.Fatalf("the revision is %q, and was %q", b.Revision, have)
			}
			return b
		}
	}
}

// unchanged wants none.
func unchanged(t *testing.T, s *Source, have string) {
	t.Helper()
	if b, err := s.Next(t.Context(), have); b != nil || err != nil {
		t.Fatalf("%+v, %v; nothing has changed", b, err)
	}
}

// fails wants an error with these words.
func fails(t *testing.T, s *Source, have string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := s.Next(ctx, have)
	if err == nil {
		t.Fatalf("%+v, want an error with %q", b, want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v, want %q", err, w)
		}
	}
}

const api = "version: 1\nrules: [{ name: api, per: ip, limits: %s }]\n"

func rule(limit string) string { return strings.ReplaceAll(api, "%s", limit) }
