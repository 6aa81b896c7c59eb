package client

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// arrival is a request that reached a server.
type arrival struct {
	at     time.Duration
	client string
	status int
	retry  time.Duration
}

// herd has clients, each with a Transport of its own, ask a server of 50 a second in one
// instant, and returns what each got, and what the server saw.
func herd(t *testing.T, clients int, method, body string) (answers []answer, seen []arrival) {
	var mu sync.Mutex
	began := time.Now()
	o := httplimit.Options{OnDecision: func(r *http.Request, d tidegate.Decision) {
		a := arrival{at: time.Since(began), client: r.Header.Get("User-Agent"), status: httplimit.Status(d)}
		if d.OK {
			a.status = 200
		} else { // as it is told
			a.retry = max(time.Second, (d.RetryAfter + time.Second - 1).Truncate(time.Second))
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a)
	}}
	limited := o.Limit(tidegate.New(memory.New(), tidegate.PerSecond(50)), everyone)
	_, base := serve(t, limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})).ServeHTTP)
	answers = make([]answer, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			answers[i] = do(t.Context(), named{&Transport{Base: base}, fmt.Sprint("client ", i)}, method, body)
		})
	}
	all.Wait()
	return answers, seen
}

// named is a RoundTripper that says who it is.
type named struct {
	http.RoundTripper
	name string
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", n.name)
	return n.RoundTripper.RoundTrip(r)
}

// A thousand clients are refused in one instant. They come back spread, none before its time,
// and each ends with what it asked for, or, after eight tries or a minute, with the refusal.
func TestHerd(t *testing.T) {
	for _, c := range []struct{ method, body string }{{"GET", ""}, {"POST", "a body to be replayed"}} {
		t.Run(c.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 1000
				answers, seen := herd(t, clients, c.method, c.body)
				served, refused := 0, 0
				var longest time.Duration
				tries := map[string]int{}
				for _, a := range seen {
					tries[a.client]++
				}
				for i, a := range answers {
					switch {
					case a.err == nil && a.status == 200 && a.body == c.body:
						served++
					case a.err == nil && a.status == 429 && a.body != "" && (tries[fmt.Sprint("client ", i)] == DefaultMaxTries || a.took > DefaultMaxWait/2):
						refused++
					default:
						t.Errorf("client %d: %+v", i, a)
					}
					longest = max(longest, a.took)
				}
				if served < clients*9/10 || longest > DefaultMaxWait {
					t.Errorf("%d of %d were served, the last after %s", served, clients, longest)
				}
				last := map[string]arrival{}
				var second []time.Duration // arrivals of those who were refused in the first instant
				for _, a := range seen {
					before, ok := last[a.client]
					if ok && a.at < before.at+before.retry {
						t.Errorf("%s came %s after a refusal of %s", a.client, a.at-before.at, before.retry)
					}
					if ok && before.at == 0 {
						second = append(second, a.at)
					}
					last[a.client] = a
				}
				most := mostWithin(second, 50*time.Millisecond)
				if len(second) < 900 || most > len(second)/5 {
					t.Errorf("of %d that came again, %d did so within 50 ms", len(second), most)
				}
				t.Logf("%d served, %d refused in the end, %d requests, the last after %s; at most %d of %d came back within 50 ms",
					served, refused, len(seen), longest, most, len(second))
			})
		})
	}
}

// mostWithin is how many of at lie within a span.
func mostWithin(at []time.Duration, span time.Duration) (most int) {
	slices.Sort(at)
	for i, from := 0, 0; i < len(at); i++ {
		for at[i]-at[from] > span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}
