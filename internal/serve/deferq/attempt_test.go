package deferq

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Attempts, whatever becomes of them, are charged to the limit; the pauses between those of one
// request grow.
func TestRetriesAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		fails := 0
		b.setSend(func(*http.Request) (*http.Response, bool, error) {
			if fails++; fails%3 == 0 {
				return answered(200, ""), true, nil
			}
			return answered(503, ""), true, nil
		})
		b.accept("ann", 0, 0)
		for i := range 12 {
			if w := b.order("ann", fmt.Sprint(i)); w.Code != 202 && w.Code != 503 && w.Code != 200 {
				t.Fatal(w.Code)
			}
		}
		time.Sleep(5 * time.Minute)
		got := b.arrivals()
		for i := 2; i < len(got); i++ {
			if gap := got[i].at.Sub(got[i-2].at); gap < time.Second-time.Microsecond {
				t.Errorf("three attempts within %s", gap)
			}
		}
		last, keys := "", map[string]string{}
		for _, a := range got[2:] {
			if a.body < last && len(a.body) == len(last) {
				t.Errorf("%s after %s", a.body, last)
			}
			last = a.body
			if had := keys[a.body]; had != "" && had != a.header.Get("Idempotency-Key") || a.header.Get("Idempotency-Key") == "" {
				t.Errorf("%s: the key is %q, and was %q", a.body, a.header.Get("Idempotency-Key"), had)
			}
			keys[a.body] = a.header.Get("Idempotency-Key")
		}
		if len(keys) != 10 {
			t.Errorf("%d requests were tried, want 10", len(keys))
		}
	})
}

// What becomes of a request by the upstream's answer.
func TestJudged(t *testing.T) {
	f := func(status int, err error, want State, reason string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			defer b.close()
			b.accept("ann", 0, 2)
			b.setSend(always(status, "it says"))
			if err != nil {
				b.setSend(func(*http.Request) (*http.Response, bool, error) { return nil, true, err })
			}
			at := b.order("ann", "x").Header().Get("Location")
			time.Sleep(3 * time.Second)
			s := b.read("ann", at)
			if s.State != want || !strings.Contains(s.Reason, reason) {
				t.Errorf("%d %v: %+v", status, err, s)
			}
			if want != Waiting && s.Attempts != 1 || want == Waiting && s.Attempts < 1 {
				t.Errorf("%d %v: %d attempts", status, err, s.Attempts)
			}
			if want == Done && (s.Result.Status != status || s.Result.Body != "it says") {
				t.Errorf("%d: %+v", status, s.Result)
			}
		})
	}
	f(200, nil, Done, "")
	f(302, nil, Done, "")
	f(404, nil, Done, "")
	f(409, nil, Done, "")
	f(401, nil, Dead, "401")
	f(403, nil, Dead, "403")
	f(429, nil, Waiting, "429")
	f(500, nil, Waiting, "500")
	f(503, nil, Waiting, "503")
	f(0, errors.New("connection reset"), Waiting, "connection reset")
}

// A request that cannot be sent in time is a dead letter, and lets those behind it go.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, strings.Replace(testRules, "keep: 1h", "keep: 10m", 1))
		defer b.close()
		b.accept("ann", 0, 2)
		b.setSend(always(500, ""))
		first := b.order("ann", "first").Header().Get("Location")
		time.Sleep(9 * time.Minute)
		second := b.order("ann", "second").Header().Get("Location")
		time.Sleep(5 * time.Minute)
		b.setSend(nil)
		time.Sleep(5*time.Minute + time.Minute)
		if one := b.read("ann", first); one.State != Dead || !strings.Contains(one.Reason, "10m") || !strings.Contains(one.Reason, "500") {
			t.Errorf("the first: %+v", one)
		}
		if two := b.read("ann", second); two.State != Done {
			t.Errorf("the second: %+v", two)
		}
		if err := b.store.Retry(t.Context(), strings.TrimPrefix(first, "/deferred/"), time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if one := b.read("ann", first); one.State != Done {
			t.Errorf("after a retry: %+v", one)
		}
	})
}

// A replay that hangs ends with its time, and is tried again; other keys go on meanwhile.
func TestHangingReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules)
		defer b.close()
		b.accept("ann", 0, 2)
		b.accept("bob", 0, 2)
		hang := true
		b.setSend(func(r *http.Request) (*http.Response, bool, error) {
			if r.Header.Get("X-User") == "ann" && hang {
				hang = false
				<-r.Context().Done()
				return nil, true, r.Context().Err()
			}
			return answered(200, ""), true, nil
		})
		ann := b.order("ann", "x").Header().Get("Location")
		bob := b.order("bob", "y").Header().Get("Location")
		time.Sleep(3 * time.Second)
		if s := b.read("bob", bob); s.State != Done {
			t.Errorf("bob waits behind ann: %+v", s)
		}
		if s := b.read("ann", ann); s.State != Trying {
			t.Errorf("%+v", s)
		}
		time.Sleep(9 * time.Second)
		if s := b.read("ann", ann); s.Attempts < 1 || s.State == Waiting && !strings.Contains(s.Reason, "did not answer within 10s") {
			t.Errorf("%+v", s)
		}
		time.Sleep(5 * time.Second)
		if s := b.read("ann", ann); s.State != Done {
			t.Errorf("%+v", s)
		}
	})
}

// Credentials can be left out, and others set.
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testRules, func(o *Options) {
			o.Strip = []string{"Cookie"}
			o.Credentials = map[string]func() (string, error){"Authorization": func() (string, error) { return "Bearer replay", nil }}
		})
		defer b.close()
		b.accept("ann", 0, 2)
		r := newRequest("ann", "x")
		r.Header.Set("Cookie", "secret")
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Idempotency-Key", "mine")
		b.serve(r)
		time.Sleep(2 * time.Second)
		got := b.arrivals()
		h := got[len(got)-1].header
		if h.Get("Cookie") != "" || h.Get("Authorization") != "Bearer replay" || h.Get("Idempotency-Key") != "mine" {
			t.Errorf("%v", h)
		}
	})
}

func TestPauses(t *testing.T) {
	for attempts := 1; attempts < 80; attempts++ {
		whole := min(time.Duration(1)<<min(attempts-1, 30)*time.Second, maxPause)
		for range 20 {
			if p := pauseAfter(attempts); p < whole/2 || p >= whole {
				t.Fatalf("%s after %d attempts, want %s to %s", p, attempts, whole/2, whole)
			}
		}
	}
}

// An upstream that is limited itself says when to come again, and is not asked before.
func TestRetryAfterIsHonoured(t *testing.T) {
	f := func(header string, status int, least, most time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			defer b.close()
			b.accept("ann", 0, 2)
			text := strings.Replace(header, "DATE", time.Now().Add(20*time.Minute).UTC().Format(http.TimeFormat), 1)
			b.setSend(func(*http.Request) (*http.Response, bool, error) {
				res := answered(status, "")
				res.Header.Set("Retry-After", text)
				return res, true, nil
			})
			b.order("ann", "x")
			for len(b.arrivals()) < 4 {
				time.Sleep(100 * time.Millisecond)
			}
			got := b.arrivals()
			if gap := got[3].at.Sub(got[2].at); gap < least || gap > most {
				t.Errorf("%s: again after %s, want %s to %s", header, gap, least, most)
			}
		})
	}
	f("7", 429, 7*time.Second, 8*time.Second)
	f("7", 503, 7*time.Second, 8*time.Second)
	f("1200", 429, 20*time.Minute, 21*time.Minute)
	f("DATE", 429, 19*time.Minute, 21*time.Minute)
	f("0", 429, firstPause/2, 3*time.Second)
	f("-1", 429, firstPause/2, 3*time.Second)
	f("soon", 429, firstPause/2, 3*time.Second)
}

func TestRetryAfterIsBounded(t *testing.T) {
	now := time.Now()
	for _, text := range []string{"3601", "99999999999", "99999999999999999999", now.Add(48 * time.Hour).UTC().Format(http.TimeFormat)} {
		if got := retryAfter(text, now); got != maxRetryAfter {
			t.Errorf("%s: %s, want %s", text, got, maxRetryAfter)
		}
	}
	if got := retryAfter(now.Add(-time.Hour).UTC().Format(http.TimeFormat), now); got != 0 {
		t.Errorf("a date that has passed: %s", got)
	}
}

// cutter is the body of an answer: cut is called when it is closed, after it has failed with err or was read whole.
type cutter struct {
	io.Reader
	err error
	cut func()
}

func (c cutter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF && c.err != nil {
		err = c.err
	}
	return n, err
}

func (c cutter) Close() error { c.cut(); return nil }

// An attempt whose answer has come is concluded by it, also if the queue is cut off before it is recorded. Without
// an answer the request is sent again.
func TestAnsweredBeforeTheCut(t *testing.T) {
	f := func(status int, broken error, want State, sends int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, testRules)
			b.accept("ann", 0, 2)
			at := b.order("ann", "x").Header().Get("Location")
			b.setSend(func(*http.Request) (*http.Response, bool, error) {
				res := answered(status, "")
				res.Body = cutter{strings.NewReader("it says"), broken, func() { b.queue.stop(); b.queue.cut() }}
				return res, true, nil
			})
			time.Sleep(2 * time.Second)
			b.close()
			b.setSend(nil)
			b.open()
			defer b.close()
			if s := b.read("ann", at); want != Waiting && s.State != want { // what waits may be due at once
				t.Errorf("%d, %v: %+v, want %s", status, broken, s, want)
			}
			time.Sleep(time.Minute)
			if n := len(b.arrivals()) - 2; n != sends {
				t.Errorf("%d, %v: it was sent %d times, want %d", status, broken, n, sends)
			}
			if s := b.read("ann", at); want == Waiting && (s.State != Done || broken != nil && s.Attempts != 1 || broken == nil && s.Attempts != 2) {
				t.Errorf("%d, %v: at last %+v", status, broken, s)
			}
		})
	}
	f(200, nil, Done, 1)
	f(302, nil, Done, 1)
	f(404, nil, Done, 1)
	f(403, nil, Dead, 1)
	f(429, nil, Waiting, 2)
	f(503, nil, Waiting, 2)
	f(200, io.ErrUnexpectedEOF, Waiting, 2)
	f(503, io.ErrUnexpectedEOF, Waiting, 2)
}
