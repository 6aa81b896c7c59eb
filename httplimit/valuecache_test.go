package httplimit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Many more phrases than slots, of limits that stand at the same places, asked
// for by many at once: each gets what it asked for.
func TestPhrasesAreNeverMixedUp(t *testing.T) {
	named := func(name string) *policy {
		return newPolicy(tidegate.MustLimit(tidegate.Spec{Name: name, Events: 9, Period: time.Second}), name)
	}
	slots := newPolicy(tidegate.Slots(3, time.Minute), "slots")
	all := []*policy{named("a"), named("b"), slots}
	var cache valueCache
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range int64(20_000) {
				p := all[i%3]
				remaining, reset := i*int64(g+1)%97, i%31
				want := fmt.Sprintf(`"%s";r=%d;t=%d`, p.name, remaining, reset)
				if p.slots {
					reset = 0
					want = fmt.Sprintf(`"slots";r=%d`, remaining)
				}
				got := cache.values(p, remaining, reset, p.draft11)
				if got[0] != want || got[1] != p.draft11 {
					t.Errorf("got %q, want %q and %q", *got, want, p.draft11)
					return
				}
				got[0], got[1] = "mine", "now" // as a handler may
				again := cache.find(p, remaining, reset)
				if again.text != want || again.left() != fmt.Sprint(remaining) || again.number(reset) != fmt.Sprint(reset) || again.number(77) != "77" {
					t.Errorf("%q: %s left, reset in %s, and 77 is %s", again.text, again.left(), again.number(reset), again.number(77))
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestPhrasesAreFoundAgain(t *testing.T) {
	// Where a bucket of 100 per minute can stand; few may share a slot.
	var cache valueCache
	p := newPolicy(tidegate.PerMinute(100), "default")
	allocs := testing.AllocsPerRun(10, func() {
		for r := range int64(100) {
			cache.values(p, r, (100-r)*60/100+1, "")
		}
	})
	if allocs > 130 { // one if found, two if not
		t.Errorf("%v allocations for 100 values in the cache", allocs)
	}
}

// Whatever a handler does to its header stays in its own response.
func TestHandlersCannotSpoilEachOthersHeaders(t *testing.T) {
	const policy, item = `"default";q=100;w=60`, `"default";r=57;t=31`
	deeds := []func(h http.Header){
		func(http.Header) {},
		func(h http.Header) { h.Add("RateLimit", "added"); h.Add("RateLimit-Policy", "added") },
		func(h http.Header) { h.Set("RateLimit", "set"); h.Set("RateLimit-Policy", "set") },
		func(h http.Header) { h.Del("RateLimit"); h.Del("RateLimit-Policy") },
		func(h http.Header) { h["Ratelimit"][0], h["Ratelimit-Policy"][0] = "written", "written" },
		func(h http.Header) { h["Ratelimit"] = append(h["Ratelimit"][:0], "over", "written") },
		func(h http.Header) { clear(h["Ratelimit"]); clear(h["Ratelimit-Policy"]) },
	}
	limit := tidegate.PerMinute(100)
	lim := tidegate.New(free{limit}, limit)
	once := Limit(lim, IP())
	for name, wrap := range map[string]func(http.Handler) http.Handler{
		"limit":  once,
		"nested": func(next http.Handler) http.Handler { return once(once(next)) },
		"gate":   Gate(tidegate.NewGate(everyone{limit}, free{limit})),
	} {
		entries := 1
		if name == "nested" {
			entries = 2
		}
		wantItem := strings.Repeat(item+"|", entries)
		wantPolicy := strings.Repeat(policy+"|", entries)
		h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			head := w.Header()
			gotItem, gotPolicy := strings.Join(head["Ratelimit"], "|")+"|", strings.Join(head["Ratelimit-Policy"], "|")+"|"
			if gotItem != wantItem || gotPolicy != wantPolicy {
				t.Errorf("%s: RateLimit %s, RateLimit-Policy %s", name, gotItem, gotPolicy)
			}
			deeds[int(r.ContentLength)](head)
		}))
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 {
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					r.ContentLength = int64((g + i) % len(deeds))
					h.ServeHTTP(httptest.NewRecorder(), r)
				}
			})
		}
		wg.Wait()
	}
}
