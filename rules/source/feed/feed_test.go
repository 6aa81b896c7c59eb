package feed

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/source"
)

func bundle(revision, text string) *source.Bundle {
	return &source.Bundle{Edition: source.Edition{Revision: revision, Hash: "hash-" + revision}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(text)}}
}

func set(t testing.TB, f *Feed, b *source.Bundle) {
	t.Helper()
	if err := f.Set(b); err != nil {
		t.Fatal(err)
	}
}

// ask sends headers, given as name and value.
func ask(f *Feed, ctx context.Context, method string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "/rules/bundle", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestBundleIsServed(t *testing.T) {
	f := New(Options{})
	if w := ask(f, t.Context(), "GET"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("without rules: %d", w.Code)
	}
	b := bundle("7", "version: 1\n# <&> é\n")
	b.Author, b.Reason, b.At = "ann", "spring sale", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	set(t, f, b)
	w := ask(f, t.Context(), "GET")
	if w.Code != 200 || w.Header().Get("Content-Type") != MediaType || w.Header().Get("ETag") == "" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	got, err := Decode(w.Body.Bytes())
	if err != nil || got.Edition != b.Edition || got.Main != b.Main || string(got.Files["rules.yaml"]) != string(b.Files["rules.yaml"]) {
		t.Errorf("%+v, %v", got, err)
	}
	z := ask(f, t.Context(), "GET", "Accept-Encoding", "br, GZip")
	r, err := gzip.NewReader(z.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != w.Body.String() || z.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%q, %v", text, err)
	}
	if w := ask(f, t.Context(), "GET", "Accept-Encoding", "gzip;q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("gzip for one who does not want it")
	}
	if w := ask(f, t.Context(), "HEAD"); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := ask(f, t.Context(), "POST"); w.Code != 405 || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
	f.Withhold("The lists are nobody's business.")
	if w := ask(f, t.Context(), "GET"); w.Code != 503 || !strings.Contains(w.Body.String(), "nobody's business") {
		t.Errorf("what is withheld: %d %s", w.Code, w.Body)
	}
	set(t, f, b)
	etag := w.Header().Get("ETag")
	for _, have := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if w := ask(f, t.Context(), "GET", "If-None-Match", have); w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("ETag") != etag {
			t.Errorf("If-None-Match: %s: %d", have, w.Code)
		}
	}
	if w := ask(f, t.Context(), "GET", "If-None-Match", `"x"`); w.Code != 200 {
		t.Errorf("another ETag: %d", w.Code)
	}
	if err := f.Set(bundle("8", "\xff")); err == nil {
		t.Error("a file that is not text is served")
	}
	if w := ask(f, t.Context(), "GET", "If-None-Match", etag); w.Code != 304 {
		t.Errorf("after a bundle that cannot be served: %d", w.Code)
	}
}

// A follower waits for as long as it says, or until there are other rules.
func TestWaits(t *testing.T) {
	f := func(prefer string, want time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			t.Helper()
			f := New(Options{})
			set(t, f, bundle("1", "a"))
			etag := ask(f, t.Context(), "GET").Header().Get("ETag")
			start := time.Now()
			w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", prefer)
			if took := time.Since(start); w.Code != 304 || took != want {
				t.Errorf("Prefer: %s: %d after %s, want %s", prefer, w.Code, took, want)
			}
			if applied := w.Header().Get("Preference-Applied"); (applied != "") != (want > 0) {
				t.Errorf("Prefer: %s: Preference-Applied: %q", prefer, applied)
			}
		})
	}
	f("wait=60", time.Minute)
	f("respond-async, Wait = 5", 5*time.Second)
	f("wait=2; x=y, handling=lenient", 2*time.Second)
	f("wait=100000", MaxWait)
	f("wait=0", 0)
	f("wait=-1", 0)
	f("wait", 0)
	f("wait=soon", 0)
	f("", 0)
}

// Everybody who waits is told of other rules at the same moment, and nobody of the same again.
func TestChangeWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		etag := ask(f, t.Context(), "GET").Header().Get("ETag")
		start := time.Now()
		const followers = 1000
		var all sync.WaitGroup
		for i := range followers {
			all.Go(func() {
				w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60", nodeHeader, fmt.Sprint("node-", i))
				if took := time.Since(start); w.Code != 200 || took != 20*time.Second || !strings.Contains(w.Body.String(), `"revision":"2"`) {
					t.Errorf("%d after %s", w.Code, took)
				}
			})
		}
		time.Sleep(10 * time.Second)
		set(t, f, bundle("1", "a"))
		synctest.Wait()
		if n := f.waiting; n != followers {
			t.Errorf("%d wait", n)
		}
		// One above the bound is answered at once.
		if w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != 304 || time.Since(start) != 10*time.Second {
			t.Errorf("above the bound: %d after %s", w.Code, time.Since(start))
		}
		time.Sleep(10 * time.Second)
		set(t, f, bundle("2", "b"))
		all.Wait()
		if f.waiting != 0 {
			t.Errorf("%d wait afterwards", f.waiting)
		}
		if n := len(f.Followers()); n != followers {
			t.Errorf("%d followers", n)
		}
	})
}

// A feed whose rules are set has nothing to load after a change.
func TestChangedWithoutLoad(t *testing.T) {
	f := New(Options{})
	set(t, f, bundle("1", "a"))
	f.Changed()
	if w := ask(f, t.Context(), "GET"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A bundle is made when somebody asks, once for all who do, and again only after a change.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		var err error
		f := New(Options{Load: func() (*source.Bundle, error) {
			loads++
			time.Sleep(time.Second)
			return bundle(fmt.Sprint(loads), "a"), err
		}})
		f.Changed()
		f.Changed()
		if loads != 0 {
			t.Errorf("loaded %d times for nobody", loads)
		}
		etag := ""
		for want := 1; want <= 3; want++ {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60")
					if w.Code != 200 || !strings.Contains(w.Body.String(), fmt.Sprintf(`"revision":"%d"`, want)) {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				})
			}
			synctest.Wait()
			if want > 1 {
				f.Changed()
			}
			all.Wait()
			if loads != want {
				t.Errorf("loaded %d times, want %d", loads, want)
			}
			etag = ask(f, t.Context(), "GET").Header().Get("ETag")
		}
		err = errors.New("they name files by absolute paths")
		f.Changed()
		if w := ask(f, t.Context(), "GET"); w.Code != 503 || !strings.Contains(w.Body.String(), "absolute paths") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// A wait outlasts the time that a server gives requests, over HTTP/1 and HTTP/2.
func TestServerWithReadTimeout(t *testing.T) {
	f := New(Options{})
	set(t, f, bundle("1", "a"))
	testdep.Undisturbed(t, 100*time.Millisecond, func(t testing.TB) {
		s := httptest.NewUnstartedServer(f)
		s.Config.ReadTimeout, s.EnableHTTP2 = 400*time.Millisecond, true
		s.StartTLS()
		defer s.Close()
		for _, h2 := range []bool{true, false} {
			client := s.Client()
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
			if !h2 {
				client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
				client.CloseIdleConnections()
			}
			get := func(etag string) *http.Response {
				r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
				r.Header.Set("If-None-Match", etag)
				r.Header.Set("Prefer", "wait=1")
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				return answer
			}
			etag := get("").Header.Get("ETag")
			start := time.Now()
			if answer := get(etag); answer.StatusCode != 304 || time.Since(start) < 900*time.Millisecond || (answer.ProtoMajor == 2) != h2 {
				t.Errorf("HTTP/%d: %d after %s", answer.ProtoMajor, answer.StatusCode, time.Since(start))
			}
		}
	})
}

// Whoever waits is told that there are no rules for them any more.
func TestWithhold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		etag := ask(f, t.Context(), "GET").Header().Get("ETag")
		time.AfterFunc(5*time.Second, func() { f.Withhold("Gone.") })
		start := time.Now()
		if w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != 503 || time.Since(start) != 5*time.Second {
			t.Errorf("%d after %s", w.Code, time.Since(start))
		}
		time.AfterFunc(5*time.Second, func() { set(t, f, bundle("1", "a")) })
		start = time.Now()
		if w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != 304 || time.Since(start) != 5*time.Second {
			t.Errorf("%d after %s", w.Code, time.Since(start))
		}
	})
}

// Whoever waits is let go by Close and by the end of the request.
func TestEndOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		set(t, f, bundle("1", "a"))
		etag := ask(f, t.Context(), "GET").Header().Get("ETag")
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		if ask(f, ctx, "GET", "If-None-Match", etag, "Prefer", "wait=60"); time.Since(start) != 7*time.Second {
			t.Errorf("a client that left: %s", time.Since(start))
		}
		time.AfterFunc(3*time.Second, f.Close)
		start = time.Now()
		if w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != 304 || time.Since(start) != 3*time.Second {
			t.Errorf("at the end: %d after %s", w.Code, time.Since(start))
		}
		f.Close()
		start = time.Now()
		if w := ask(f, t.Context(), "GET", "If-None-Match", etag, "Prefer", "wait=60"); w.Code != 304 || time.Since(start) != 0 {
			t.Errorf("after the end: %d after %s", w.Code, time.Since(start))
		}
		if w := ask(f, t.Context(), "GET"); w.Code != http.StatusOK {
			t.Errorf("after the end, without waiting: %d", w.Code)
		}
	})
}
