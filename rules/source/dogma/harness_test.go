package dogma

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/dogma/dogmatest"
)

var quick = pace{poll: 10 * time.Millisecond, spread: time.Millisecond}

// stand is a stand-in of Central Dogma, and what it was asked.
type stand struct {
	*dogmatest.Server
	t   *testing.T
	url string

	mu    sync.Mutex
	hook  func(w http.ResponseWriter, r *http.Request) bool
	asked []*http.Request
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, Server: dogmatest.New("shop", "limits", "")}
	s.Server.Hook = func(w http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		hook := s.hook
		s.mu.Unlock()
		return hook != nil && hook(w, r)
	}
	is := httptest.NewServer(s.Server)
	t.Cleanup(is.Close)
	s.url = strings.Replace(is.URL, "http://", "dogma://", 1) + "/shop/limits"
	return s
}

func (s *stand) setHook(hook func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.asked = hook, nil
}

func (s *stand) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *stand) source(path string, edit ...func(*Options)) *Source {
	s.t.Helper()
	o := Options{URL: s.url + path}
	for _, f := range edit {
		f(&o)
	}
	is, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	is.pace = quick
	s.t.Cleanup(func() { _ = is.Close() })
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
			if b.Revision == have {
				t.Fatalf("revision %q again", have)
			}
			return b
		}
	}
}

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

func text(b *source.Bundle) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		all = append(all, name+"="+strings.TrimSpace(string(b.Files[name])))
	}
	return strings.Join(all, " | ")
}

func shortly(f func()) { time.AfterFunc(30*time.Millisecond, f) }
