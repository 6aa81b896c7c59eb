package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func nothing(context.Context) func(string) []byte { return func(string) []byte { return []byte("{}") } }

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// Every file is served with a policy that lets it load nothing from elsewhere and be framed by
// nobody.
func TestFiles(t *testing.T) {
	d := New(Options{Look: nothing})
	defer d.Close()
	total := 0
	err := fs.WalkDir(embedded, "files", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		w := get(d, "GET", Prefix+strings.TrimPrefix(name, "files/"))
		total += w.Body.Len()
		h := w.Header()
		if w.Code != 200 || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
			strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d %v", name, w.Code, h)
		}
		// Nothing names another host, but for the namespace of SVG.
		for _, url := range regexp.MustCompile(`https?://[^\s"'<)]+`).FindAllString(w.Body.String(), -1) {
			if url != "http://www.w3.org/2000/svg" {
				t.Errorf("%s names %s", name, url)
			}
		}
		for _, bad := range []string{"innerHTML", "eval(", "document.write", "insertAdjacentHTML", "onclick=", " style=", "localStorage", "sessionStorage"} {
			if strings.Contains(w.Body.String(), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > 150_000 || total < 10_000 {
		t.Errorf("the page weighs %d bytes", total)
	}
	if w := get(d, "GET", Prefix); w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(w.Body.String(), "<title>Tidegate</title>") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := get(d, "GET", Prefix+"app.js"); w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%v", w.Header())
	}
	for path, want := range map[string]int{"/ui/none.js": 404, "/ui/../dashboard.go": 404, "/ui/files/app.js": 404, "/ui": 404} {
		if w := get(d, "GET", path); w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := get(d, "POST", Prefix); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
	first := get(d, "GET", Prefix+"app.js")
	r := httptest.NewRequest("GET", Prefix+"app.js", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	w := httptest.NewRecorder()
	if d.ServeHTTP(w, r); w.Code != http.StatusNotModified {
		t.Errorf("unchanged: %d", w.Code)
	}
}

// lookout counts how often somebody looks.
type lookout struct{ looks, written atomic.Int64 }

func (l *lookout) look(context.Context) func(string) []byte {
	n := l.looks.Add(1)
	return func(topic string) []byte {
		l.written.Add(1)
		return fmt.Appendf(nil, `{"look":%d,"topic":%q}`, n, topic)
	}
}

// page is an open page, and what it was sent.
type page struct {
	http.ResponseWriter
	mu    sync.Mutex
	lines []string
}

func (p *page) Header() http.Header { return http.Header{} }
func (p *page) WriteHeader(int)     {}
func (p *page) Flush()              {}
func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, string(b))
	return len(b), nil
}

// SetWriteDeadline is for http.ResponseController.
func (p *page) SetWriteDeadline(time.Time) error { return nil }

func (p *page) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines
}

func yes() bool { return true }

// However many pages are open, somebody looks once in a tick and writes each topic once; without
// pages nobody looks.
func TestOneLookForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lookout
		d := New(Options{Look: l.look, Every: time.Second, Pages: 1000})
		defer d.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := l.looks.Load(); n != 0 {
			t.Errorf("%d looks without a page", n)
		}
		ctx, leave := context.WithCancel(t.Context())
		pages := make([]*page, 500)
		var open sync.WaitGroup
		for i := range pages {
			pages[i] = new(page)
			path := "/live"
			if i%2 == 1 {
				path = "/live?rule=api"
			}
			r := httptest.NewRequest("GET", path, nil).WithContext(ctx)
			open.Go(func() { d.Stream(pages[i], r, yes) })
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		looks, written := l.looks.Load(), l.written.Load()
		if looks < 10 || looks > 12 || written > 2*looks {
			t.Errorf("%d looks, %d topics written", looks, written)
		}
		for i, p := range pages {
			topic := []string{"", "api"}[i%2]
			last := p.got()[len(p.got())-1]
			if n := len(p.got()); n < 10 || n > 14 || last != fmt.Sprintf("data: {\"look\":%d,\"topic\":%q}\n\n", looks, topic) {
				t.Fatalf("page %d got %d events, the last %q", i, n, last)
			}
		}
		leave()
		open.Wait()
		time.Sleep(10 * time.Second)
		if n := l.looks.Load(); n != looks {
			t.Errorf("%d looks after all have left", n-looks)
		}
	})
}

// A stream ends when its operator may not look any more, and when the server ends. Too many are
// refused.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lookout
		d := New(Options{Look: l.look, Every: time.Second, Pages: 2})
		var may atomic.Bool
		may.Store(true)
		var open sync.WaitGroup
		ended := make(chan string, 2)
		r := func() *http.Request { return httptest.NewRequest("GET", "/live", nil) }
		open.Go(func() { d.Stream(new(page), r(), may.Load); ended <- "signed out" })
		open.Go(func() { d.Stream(new(page), r(), yes); ended <- "closed" })
		time.Sleep(3 * time.Second)
		w := httptest.NewRecorder()
		if d.Stream(w, r(), yes); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d", w.Code)
		}
		may.Store(false)
		if who := <-ended; who != "signed out" {
			t.Errorf("%s", who)
		}
		d.Close()
		d.Close()
		if who := <-ended; who != "closed" {
			t.Errorf("%s", who)
		}
		open.Wait()
		if d.Stream(w, r(), yes); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", w.Code)
		}
	})
}

// A page gets events over a real connection, and the first at once.
func TestStreamOverHTTP(t *testing.T) {
	var l lookout
	d := New(Options{Look: l.look, Every: time.Hour})
	defer d.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.Stream(w, r, yes) }))
	defer server.Close()
	for range 2 {
		answer, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		scan := bufio.NewScanner(answer.Body)
		for scan.Scan() && !strings.HasPrefix(scan.Text(), "data:") {
		}
		if answer.Header.Get("Content-Type") != "text/event-stream" || scan.Text() != `data: {"look":1,"topic":""}` {
			t.Errorf("%v: %q", answer.Header, scan.Text())
		}
		answer.Body.Close()
	}
}
