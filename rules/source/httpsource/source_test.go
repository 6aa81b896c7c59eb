package httpsource

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/rules/source/feed"
	"tidegate.dev/tidegate/rules/source/internal/web"
)

// Whatever a server knows about versions, and whether it waits or not, changes are seen, what is
// the same is not taken for a change, and two versions never have one revision.
func TestEveryKindOfServer(t *testing.T) {
	for name, tag := range map[string]func(string, http.Header){"strong": strong, "weak": weak, "dated": dated, "bare": nil, "no dates": func(string, http.Header) {}} {
		for _, holds := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				site := newSite(t, map[string]string{"/r/rules.yaml": rule("1/second")})
				site.tag, site.holds = tag, holds
				s := site.source("/r/rules.yaml")
				b := next(t, s, "")
				if b.Main != "rules.yaml" || string(b.Files[b.Main]) != rule("1/second") || len(b.Files) != 1 {
					t.Fatalf("%+v", b)
				}
				seen := map[string]string{b.Revision: rule("1/second")}
				for _, limit := range []string{"2/second", "30/second", "4/second", "2/second"} {
					time.AfterFunc(30*time.Millisecond, func() { site.set("/r/rules.yaml", rule(limit)) })
					b = next(t, s, b.Revision)
					text := string(b.Files["rules.yaml"])
					if text != rule(limit) {
						t.Fatalf("%q, want %q", text, limit)
					}
					if was, ok := seen[b.Revision]; ok && was != text {
						t.Errorf("two versions are called %q", b.Revision)
					}
					seen[b.Revision] = text
				}
				s.o.Wait = 100 * time.Millisecond
				if !holds {
					unchanged(t, s, b.Revision)
				}
				if tag == nil || name == "no dates" {
					return
				}
				again := site.source("/r/rules.yaml") // another node, or the same after a restart
				if b, err := again.Next(t.Context(), b.Revision); b != nil || err != nil {
					t.Errorf("another node has %+v, %v", b, err)
				}
			})
		}
	}
}

// The revision of a single file is its ETag, for people to find it again.
func TestRevisionIsTheETag(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	site.tag = func(_ string, h http.Header) { h.Set("ETag", `"v42"`) }
	s := site.source("/rules.yaml")
	b := next(t, s, "")
	if b.Revision != "v42" {
		t.Errorf("%q", b.Revision)
	}
	// The server keeps the ETag for another version, as those do that make it of time and size.
	site.set("/rules.yaml", rule("9/second"))
	s.o.Wait = 50 * time.Millisecond
	unchanged(t, s, b.Revision)
	s.pace.doubt = 0
	other := next(t, s, b.Revision)
	if string(other.Files["rules.yaml"]) != rule("9/second") || !strings.HasPrefix(other.Revision, "v42-") {
		t.Errorf("%+v", other)
	}
	unchanged(t, s, other.Revision)
	unchanged(t, s, other.Revision)
}

// ETags do not count up, even if they look like numbers: package source takes a lower number for
// an old copy.
func TestETagsAreNotNumbers(t *testing.T) {
	for _, tag := range []string{`"12"`, `"7-0a1b2c3d"`, `W/"12"`} {
		site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
		site.tag = func(_ string, h http.Header) { h.Set("ETag", tag) }
		if b := next(t, site.source("/rules.yaml"), ""); !strings.HasPrefix(b.Revision, `"`) || !strings.Contains(b.Revision, strings.Trim(tag, `W/"`)) {
			t.Errorf("%s is revision %s", tag, b.Revision)
		}
	}
	if unordered("00001111") == "00001111" || unordered("0000111a") != "0000111a" {
		t.Error("a hash may look like a number, too")
	}
}

// A file that is written twice in a second has one date, and one ETag if that is made of time
// and size. The second version is seen all the same.
func TestTwoVersionsInOneSecond(t *testing.T) {
	written := time.Now().UTC()
	for name, tag := range map[string]func(string, http.Header){
		"date": func(_ string, h http.Header) { h.Set("Last-Modified", written.Format(http.TimeFormat)) },
		"both": func(_ string, h http.Header) {
			h.Set("ETag", `"6a-56"`)
			h.Set("Last-Modified", written.Format(http.TimeFormat))
		},
		"odd clock": func(_ string, h http.Header) { h.Set("Last-Modified", written.Add(time.Hour).Format(http.TimeFormat)) },
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
			site.tag = func(text string, h http.Header) {
				tag(text, h)
				h.Set("Date", written.Add(time.Second).Format(http.TimeFormat))
			}
			s := site.source("/rules.yaml")
			b := next(t, s, "")
			site.set("/rules.yaml", rule("9/second"))
			other := next(t, s, b.Revision)
			if string(other.Files["rules.yaml"]) != rule("9/second") {
				t.Errorf("%+v", other)
			}
		})
	}
}

// A long poll is one request for as long as nothing changes.
func TestLongPollIsOneRequest(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	site.holds = true
	s := site.source("/rules.yaml")
	b := next(t, s, "")
	site.paths()
	time.AfterFunc(300*time.Millisecond, func() { site.set("/rules.yaml", rule("2/second")) })
	next(t, s, b.Revision)
	site.mu.Lock()
	defer site.mu.Unlock()
	if len(site.asked) != 1 {
		t.Fatalf("%d requests", len(site.asked))
	}
	r := site.asked[0]
	if r.Header.Get("Prefer") != "wait=60" || r.Header.Get("If-None-Match") != `"`+b.Revision+`"` {
		t.Errorf("%v", r.Header)
	}
}

// A server that does not wait is asked at a decent pace, and less often if it says so.
func TestPaceOfPolls(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	s := site.source("/rules.yaml", wait(500*time.Millisecond))
	s.pace.poll = 50 * time.Millisecond
	b := next(t, s, "")
	site.paths()
	unchanged(t, s, b.Revision)
	if n := len(site.paths()); n > 12 {
		t.Errorf("asked %d times in half a second, with a pace of 50ms", n)
	}
	s.pace = usual
	f := func(is file, took, least, most time.Duration) {
		t.Helper()
		differ := false
		first := s.pause(&is, took)
		for range 100 {
			d := s.pause(&is, took)
			if d < least || d > most {
				t.Fatalf("a pause of %s, want %s to %s", d, least, most)
			}
			differ = differ || d != first
		}
		if !differ && least != most {
			t.Error("no jitter")
		}
	}
	f(file{etag: "x"}, 0, 900*time.Millisecond, 1100*time.Millisecond)
	f(file{etag: "x"}, 999*time.Millisecond, 900*time.Millisecond, 1100*time.Millisecond)
	f(file{etag: "x"}, time.Second, 0, 0)
	f(file{etag: "x", maxAge: time.Minute}, 0, 54*time.Second, 66*time.Second)
	f(file{etag: "x", maxAge: time.Minute}, time.Minute, 0, 0)
	f(file{etag: "x", text: make([]byte, 10<<20)}, 0, 900*time.Millisecond, 1100*time.Millisecond)
	f(file{text: make([]byte, 10<<20)}, 0, 9*time.Second, 11*time.Second)
}

// A server that is busy is left alone for as long as it says.
func TestRetryAfter(t *testing.T) {
	site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
	s := site.source("/rules.yaml", wait(10*time.Millisecond))
	site.setHook(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	fails(t, s, "", "503 Service Unavailable")
	site.paths()
	fails(t, s, "", "busy")
	fails(t, s, "", "busy")
	if n := len(site.paths()); n != 0 {
		t.Errorf("asked %d times", n)
	}
	s.rest = web.Rest{}
	site.setHook(nil)
	next(t, s, "")
}

// Errors say what was asked and what came, and leave what was there before.
func TestErrors(t *testing.T) {
	big := strings.Repeat("# a comment that is compressed well\n", small.file/36+100)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 10 {
		_, _ = z.Write([]byte(big))
	}
	_ = z.Close()
	f := func(answer func(w http.ResponseWriter, r *http.Request), want ...string) {
		t.Helper()
		site := newSite(t, map[string]string{"/r/rules.yaml": rule("1/second")})
		s := site.source("/r/rules.yaml?token=hush")
		b := next(t, s, "")
		site.setHook(func(w http.ResponseWriter, r *http.Request) bool { answer(w, r); return true })
		fails(t, s, b.Revision, append(want, "/r/rules.yaml")...)
		_, err := s.Next(t.Context(), "")
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v", err)
		}
		site.setHook(nil)
		unhurt := next(t, s, "")
		if unhurt.Revision != b.Revision {
			t.Errorf("afterwards: %q, was %q", unhurt.Revision, b.Revision)
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	f(status(401), "401 Unauthorized", "token_file")
	f(status(403), "403 Forbidden", "token_file")
	f(status(404), "404 Not Found", "no such file")
	f(status(410), "410 Gone", "no such file")
	f(status(429), "429 Too Many Requests")
	f(status(500), "500 Internal Server Error")
	f(status(502), "502 Bad Gateway")
	f(status(204), "204 No Content")
	f(status(206), "206 Partial Content")
	f(status(299), "answered 299")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>sign in"))
	}, "text/html", "sign in")
	f(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(big)) }, "larger than 1 MiB")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	}, "larger than 8 MiB")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("version: 1"))
	}, "breaks off")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("this is not gzip, whatever the header says"))
	}, "gzip")
	f(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF")
	f(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }, "redirected more than 3 times")
	for _, text := range []string{"", "{", "[]", "{}", `{"files":{}}`, `{"files":{"../a":"x"}}`, `{"files":{"/a":"x"}}`, `{"files":{"a/./b":"x"}}`, `{"files":{"":"x"}}`, `{"files":{"a":"x"},"main":"b"}`, `{"files":{"a":1}}`} {
		f(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", feed.MediaType)
			_, _ = w.Write([]byte(text))
		}, "bundle")
	}
}

// An answer that nobody asked for is not believed.
func TestNotModifiedThatNobodyAskedFor(t *testing.T) {
	site := newSite(t, nil)
	site.setHook(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(304); return true })
	fails(t, site.source("/rules.yaml"), "", "304", "unconditional request")
}

// A server that never answers, or never ends, does not keep Next from ending with its context.
func TestServerThatHangs(t *testing.T) {
	for _, begin := range []bool{false, true} {
		site := newSite(t, map[string]string{"/rules.yaml": rule("1/second")})
		site.setHook(func(w http.ResponseWriter, r *http.Request) bool {
			if begin {
				_, _ = w.Write([]byte("version: 1\n"))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			return true
		})
		s := site.source("/rules.yaml")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if b, err := s.Next(ctx, ""); b != nil || err == nil {
			t.Errorf("%+v, %v", b, err)
		}
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		if _, err := s.Next(cancelled, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func TestURLs(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		s, err := New(Options{URL: url})
		switch {
		case err != nil && (want == "" || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s: %v", url, err)
		case err == nil && want != "":
			t.Errorf("%s is called %s, want an error", url, s.Name())
		}
		if err == nil && strings.Contains(s.Name(), "s3cret") {
			t.Errorf("the name is %s", s.Name())
		}
	}
	f("http://h/rules.yaml", "")
	f("https://h:8443/a/b?token=s3cret", "")
	f("https://[::1]:1/", "")
	f("ftp://h/x", "an error")
	f("https:///x", "an error")
	f("rules.yaml", "an error")
	f("https://bob:s3cret@h/x", "an error")
	f("https://h/x#y", "an error")
	f("https://h/%zz?s3cret", "an error")
	a, _ := New(Options{URL: "https://h/x?a=1"})
	b, _ := New(Options{URL: "https://h/x?a=2"})
	if a.Name() == b.Name() {
		t.Errorf("both are called %s", a.Name())
	}
}
