package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A script is the answers of a server to the requests that reach it, one after the other; the
// last one is repeated. It writes down when each came, and what its body was.
type script struct {
	steps []func(http.ResponseWriter)
	began time.Time

	mu   sync.Mutex
	at   []time.Duration
	body []string
}

func newScript(steps ...func(http.ResponseWriter)) *script {
	return &script{steps: steps, began: time.Now()}
}

func (s *script) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.steps[min(len(s.at), len(s.steps)-1)]
	s.at, s.body = append(s.at, time.Since(s.began)), append(s.body, string(body))
	step(w)
}

// says answers with a status, headers "Name: value", and a body.
func says(status int, lines ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for name, values := range header(lines...) {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "answer %d", status)
	}
}

// A refusal that names a time is waited for: at least that long, and no longer than half as
// much again for the first one.
func TestWaitsAsAsked(t *testing.T) {
	f := func(status int, wait time.Duration, lines ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newScript(says(status, lines...), says(200))
			_, base := serve(t, s.serve)
			a := get(&Transport{Base: base})
			if a.status != 200 || len(s.at) != 2 {
				t.Fatalf("%d %q: %+v after %d tries", status, lines, a, len(s.at))
			}
			if gap := s.at[1] - s.at[0]; gap < wait || gap > wait+max(wait/2, DefaultBackoff) {
				t.Errorf("%d %q: again after %s, want %s or a little more", status, lines, gap, wait)
			}
		})
	}
	const s = time.Second
	f(429, 7*s, "Retry-After: 7")
	f(503, 7*s, "Retry-After: 7")
	f(429, 20*s, "Retry-After: Sat, 01 Jan 2000 00:00:20 GMT") // where synctest's clock starts
	f(429, 5*s, `RateLimit: "a";r=0;t=5`)
	f(429, 5*s, "RateLimit-Remaining: 0", "RateLimit-Reset: 5")
	f(429, 5*s, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 5")
	f(429, 5*s, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 946684805")
	f(429, 0) // a backoff
	f(500, 0, "X-Should-Retry: true")
	f(408, 0)
	f(425, 0)
	f(425, 3*s, "Retry-After: 3")
	f(429, 0, "Retry-After: Fri, 31 Dec 1999 23:00:00 GMT") // over
	f(429, 20*s, "Retry-After: Sat, 01 Jan 2005 00:00:20 GMT", "Date: Sat, 01 Jan 2005 00:00:00 GMT")
	f(429, 7*s, "Retry-After: 2", "Retry-After: 7")
	for _, status := range []int{429, 503} { // Retry-After takes precedence over the reset of a limit
		f(status, 3*s, "Retry-After: 3", `RateLimit: "a";r=0;t=30`)
		f(status, 3*s, "Retry-After: 3", `RateLimit: "a";r=0;t=2`)
		f(status, 3*s, "Retry-After: 3", "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 30")
		f(status, 0, "Retry-After: 0", "RateLimit-Remaining: 0", "RateLimit-Reset: 30")
	}
	for _, status := range []int{301, 302, 303, 307, 308} { // to the same place
		f(status, 7*s, "Retry-After: 7", "Location: /things")
		f(status, 0, "Location: /things")
		f(status, 0, "Retry-After: 3600", "Location: /things")
	}
}

// What waiting does not help with is returned as it came.
func TestReturnsWhatIsFinal(t *testing.T) {
	f := func(status int, lines ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newScript(says(status, lines...))
			_, base := serve(t, s.serve)
			a := get(&Transport{Base: base})
			if a.status != status || a.body != fmt.Sprint("answer ", status) || a.took != 0 || len(s.at) != 1 {
				t.Errorf("%d %q: %+v after %d tries", status, lines, a, len(s.at))
			}
		})
	}
	f(200)
	f(404)
	f(500)
	f(503)
	f(402, "Retry-After: 1")
	f(403, "Retry-After: 1")
	f(429, "Retry-After: 61")                                              // beyond MaxWait
	f(429, "Retry-After: 99999999")                                        // three years
	f(429, "Retry-After: 777777777")                                       // a day of 1994, if it was a moment
	f(429, "Retry-After: 999999999999999999999")                           // more digits than a number of 64 bits
	f(429, "Retry-After: Sat, 29 Jan 2000 00:00:20 GMT")                   // a quota of a month
	f(429, `RateLimit: "month";r=0;t=1209600`)                             // the same
	f(429, "Retry-After: 1", "X-Should-Retry: false")                      // by its own word
	f(429, `RateLimit: "a";r=3;t=5`, `RateLimit-Policy: "a";q=3;w=5`)      // it costs more than 3
	f(429, "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 5")             // the same
	f(429, "RateLimit-Remaining: 3", "RateLimit-Reset: 5", "X-Other: yes") // the same
}

// All waits of a request together are at most MaxWait. Then the refusal is returned, with its
// body.
func TestMaxWait(t *testing.T) {
	for _, most := range []time.Duration{-1, 5 * time.Second, 20 * time.Second, time.Minute} {
		for _, lines := range [][]string{{"Retry-After: 3"}, nil} {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(says(429, lines...))
				_, base := serve(t, s.serve)
				a := get(&Transport{Base: base, MaxWait: most, MaxTries: 1000, Throttle: -1})
				if a.status != 429 || a.body != "answer 429" || a.took > max(most, 0) {
					t.Errorf("MaxWait %s, %q: %+v", most, lines, a)
				}
				if most > 5*time.Second && len(s.at) < 3 {
					t.Errorf("MaxWait %s, %q: %d tries", most, lines, len(s.at))
				}
			})
		}
	}
}

// A request with a deadline does not wait for what comes after it, and one whose context ends
// stops waiting.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(says(429, "Retry-After: 10"))
		_, base := serve(t, s.serve)
		tr := &Transport{Base: base}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if a := do(ctx, tr, "GET", ""); a.status != 429 || a.body != "answer 429" || a.took != 0 {
			t.Errorf("a deadline before the time: %+v", a)
		}
		// The others know by now, and are not sent.
		a := do(ctx, tr, "GET", "")
		var refused *RefusedError
		if !errors.As(a.err, &refused) || !errors.Is(a.err, ErrStopped) || refused.RetryAfter != 10*time.Second || a.took != 0 {
			t.Errorf("another one: %+v", a)
		}
		if text := refused.Error(); text != "client: not sent to api.example.com: the server has asked to come back later; try again in 10s" {
			t.Error(text)
		}
		if len(s.at) != 1 {
			t.Errorf("%d were sent", len(s.at))
		}
		later, stop := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, stop)
		if a := do(later, tr, "GET", ""); !errors.Is(a.err, context.Canceled) || a.took != 2*time.Second {
			t.Errorf("canceled while it waits for others: %+v", a)
		}
		fresh := &Transport{Base: base}
		later, stop = context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, stop)
		if a := do(later, fresh, "GET", ""); !errors.Is(a.err, context.Canceled) || a.took != 2*time.Second {
			t.Errorf("canceled while it waits: %+v", a)
		}
	})
}

// A refused request is sent again with its body, whatever its method, if that can be replayed;
// after an error of the transport only if it is idempotent.
func TestWhatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"} {
			s := newScript(says(429, "Retry-After: 1"), says(429), says(200))
			_, base := serve(t, s.serve)
			if a := do(t.Context(), &Transport{Base: base}, method, "some text"); a.status != 200 {
				t.Errorf("%s: %+v", method, a)
			}
			if fmt.Sprint(s.body) != "[some text some text some text]" {
				t.Errorf("%s: the server got %q", method, s.body)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScript(says(429, "Retry-After: 1"))
		_, base := serve(t, s.serve)
		req, _ := http.NewRequest("POST", "http://api.example.com/", io.MultiReader(strings.NewReader("once")))
		res, err := (&Transport{Base: base}).RoundTrip(req)
		if err != nil || res.StatusCode != 429 || len(s.at) != 1 {
			t.Errorf("a body that cannot be replayed: %v, %v, %d tries", res, err, len(s.at))
		}
		res.Body.Close()
	})
	broken := func(method, key string) (tries int) {
		synctest.Test(t, func(t *testing.T) {
			network, base := serve(t, newScript(says(200)).serve)
			network.setDown(true)
			tr := &Transport{Base: base, OnEvent: func(_ *http.Request, e Event) {
				if e.Err != nil && e.Status == 0 {
					tries = e.Try
				}
			}}
			req, _ := http.NewRequest(method, "http://api.example.com/", strings.NewReader("text"))
			if key != "" {
				req.Header.Set("Idempotency-Key", key)
			}
			if res, err := tr.RoundTrip(req); err == nil {
				t.Errorf("%s: %v", method, res)
			}
		})
		return tries
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"} {
		if n := broken(method, ""); n != DefaultMaxTries {
			t.Errorf("%s to nobody is tried %d times", method, n)
		}
	}
	synctest.Test(t, func(t *testing.T) { // it may have come in time
		for method, want := range map[string]int{"POST": 1, "PUT": DefaultMaxTries} {
			s := newScript(says(408))
			_, base := serve(t, s.serve)
			var last Event
			tr := &Transport{Base: base, OnEvent: func(_ *http.Request, e Event) { last = e }}
			if a := do(t.Context(), tr, method, "text"); a.status != 408 || len(s.at) != want || last.Kind != Final {
				t.Errorf("%s after 408: %+v, %d tries, last %+v", method, a, len(s.at), last)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // the server knows that it did not
		s := newScript(says(408, "X-Should-Retry: true"), says(200))
		_, base := serve(t, s.serve)
		if a := do(t.Context(), &Transport{Base: base}, "POST", "text"); a.status != 200 || len(s.at) != 2 {
			t.Errorf("POST after 408 that is worth a retry: %+v, %d tries", a, len(s.at))
		}
	})
	for _, method := range []string{"POST", "PATCH"} {
		if n, keyed := broken(method, ""), broken(method, "k"); n != 1 || keyed != DefaultMaxTries {
			t.Errorf("%s to nobody is tried %d times, with a key %d", method, n, keyed)
		}
	}
}

// The connection of a refused try is used again, and a body without an end holds nobody up.
func TestBodiesOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		network, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(429)
				io.WriteString(w, strings.Repeat("x", 10_000))
			}
		})
		if a := get(&Transport{Base: base}); a.status != 200 || len(network.open) != 1 {
			t.Errorf("%+v over %d connections", a, len(network.open))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := 0
		_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(429)
				w.(http.Flusher).Flush()
				<-r.Context().Done() // the rest never comes
			}
		})
		if a := get(&Transport{Base: base}); a.status != 200 || a.took > 3*time.Second {
			t.Errorf("a body that stalls: %+v", a)
		}
	})
}

// However long the time that a server names, and however long a request may wait, it waits at
// least as long.
func TestLongestWaits(t *testing.T) {
	for _, seconds := range []int64{1, 86_400, 30 * 86_400, 9 * 365 * 86_400} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(says(429, fmt.Sprint("Retry-After: ", seconds)))
			_, base := serve(t, s.serve)
			if a := get(&Transport{Base: base, MaxWait: 1<<63 - 1}); a.status != 429 {
				t.Errorf("%+v", a)
			}
			for i, at := range s.at[1:] {
				if gap := at - s.at[i]; gap < time.Duration(seconds)*time.Second {
					t.Errorf("told to wait for %d s, came after %s", seconds, gap)
				}
			}
			if len(s.at) < 2 {
				t.Errorf("%d tries", len(s.at))
			}
		})
	}
}

// Of the requests to a server that fails, a bounded share is retried.
func TestRetryBudget(t *testing.T) {
	f := func(share float64, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newScript(says(503, "Retry-After: 1"))
			_, base := serve(t, s.serve)
			tr := &Transport{Base: base, RetryShare: share, Throttle: -1}
			const requests = 500
			for range requests {
				if a := get(tr); a.status != 503 || a.body != "answer 503" {
					t.Fatalf("%+v", a)
				}
			}
			if retries := len(s.at) - requests; retries > want || retries < want-2 {
				t.Errorf("share %g: %d retries of %d requests, want %d", share, retries, requests, want)
			}
		})
	}
	f(0, 110) // a fifth, and ten
	f(0.1, 60)
	f(1, 510)
	f(-1, 0)
}

// Waits without a name double, each at random up to its bound.
func TestBackoff(t *testing.T) {
	var longest [7]time.Duration
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(says(429))
			_, base := serve(t, s.serve)
			if a := get(&Transport{Base: base}); a.status != 429 || len(s.at) != DefaultMaxTries {
				t.Fatalf("%+v after %d tries", a, len(s.at))
			}
			for i := range longest {
				gap := s.at[i+1] - s.at[i]
				if bound := DefaultBackoff << i; gap > bound {
					t.Errorf("wait %d is %s, want at most %s", i, gap, bound)
				}
				longest[i] = max(longest[i], gap)
			}
		})
	}
	for i, d := range longest {
		if d < DefaultBackoff<<i/2 {
			t.Errorf("wait %d was never longer than %s", i, d)
		}
	}
}
