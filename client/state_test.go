package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// everyone is the key of a limit that all share.
func everyone(*http.Request) (string, bool) { return "everyone", true }

// styles are the ways in which package httplimit tells of limits.
var styles = []httplimit.Options{
	{},
	{Headers: httplimit.Draft6},
	{Headers: httplimit.X},
	{Headers: httplimit.X, Reset: httplimit.ResetEpoch},
	{Headers: httplimit.Draft6, Reset: httplimit.ResetEpoch},
	{Headers: httplimit.Draft11 | httplimit.Draft6 | httplimit.X},
}

// A client that is alone with a limit that it is told keeps under it by itself, in every
// dialect and under every algorithm: it is hardly ever refused, and uses most of the limit.
func TestKeepsUnderKnownLimits(t *testing.T) {
	const minutes = 5
	algorithms := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows}
	for _, a := range algorithms {
		for i, o := range styles {
			t.Run(fmt.Sprint(a, " ", i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					served, refused := 0, 0
					o.OnDecision = func(_ *http.Request, d tidegate.Decision) {
						if d.OK {
							served++
						} else {
							refused++
						}
					}
					limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 100, Period: time.Minute, Algorithm: a})
					h := o.Limit(tidegate.New(memory.New(), limit), everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
					_, base := serve(t, h.ServeHTTP)
					tr := &Transport{Base: base}
					for end := time.Now().Add(minutes * time.Minute); time.Now().Before(end); {
						if got := get(tr); got.status != 200 {
							t.Fatalf("%+v", got)
						}
					}
					if refused > served/50 || served < minutes*100*6/10 {
						t.Errorf("%d were served and %d refused, of 100 a minute for %d minutes", served, refused, minutes)
					}
					t.Logf("%d were served and %d refused", served, refused)
				})
			})
		}
	}
}

// A crowd that finds little of a limit waits until the limit is renewed, and is not refused.
func TestPacesACrowd(t *testing.T) {
	for i, o := range styles {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := 0
				o.OnDecision = func(_ *http.Request, d tidegate.Decision) {
					if !d.OK {
						refused++
					}
				}
				limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 100, Period: time.Minute, Algorithm: tidegate.FixedWindow})
				h := o.Limit(tidegate.New(memory.New(), limit), everyone)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				_, base := serve(t, h.ServeHTTP)
				time.Sleep(30 * time.Second)
				tr := &Transport{Base: base}
				for range 95 {
					get(tr)
				}
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() {
						if a := get(tr); a.status != 200 {
							t.Errorf("%d after %s: %v", a.status, a.took, a.err)
						}
					})
				}
				all.Wait()
				if refused > 0 {
					t.Errorf("%d of 50 were refused, with 5 left of 100", refused)
				}
			})
		})
	}
}

// Requests whose callers leave before they are sent say nothing about the server.
func TestThoseWhoLeaveAreNotThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, base := serve(t, newScript(says(200, "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 3000")).serve)
		tr := &Transport{Base: base, MaxWait: time.Hour}
		get(tr)
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			if a := do(ctx, tr, "GET", ""); !errors.Is(a.err, context.Canceled) {
				t.Fatalf("%+v", a)
			}
		}
		if a := do(t.Context(), tr, "GET", ""); a.status != 200 {
			t.Errorf("%+v", a)
		}
	})
}

// oversized holds every request to a limit at a cost that it can never admit, except for those
// to /small.
type oversized struct{ limit *tidegate.Limit }

func (o oversized) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	cost := o.limit.Capacity() + 1
	if r.Path == "/small" {
		cost = 1
	}
	return append(dst, tidegate.Check{Key: "k", Limit: o.limit, Cost: cost})
}

// A request that costs more than a limit of package httplimit can ever admit is not sent again
// and again, whatever is left of the limit: at once if something is, and after one wait if
// nothing is, since then the answer does not tell.
func TestNeverIsFinal(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		for i, o := range styles {
			for _, used := range []int{0, 1, 2} {
				t.Run(fmt.Sprint(a, " ", i, " ", used), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						sent := 0
						o.OnDecision = func(*http.Request, tidegate.Decision) { sent++ }
						limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 2, Period: 10 * time.Second, Algorithm: a})
						h := o.Gate(tidegate.NewGate(oversized{limit}, memory.New()))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
						_, base := serve(t, h.ServeHTTP)
						for range used {
							req, _ := http.NewRequest("GET", "http://api.example.com/small", nil)
							res, err := base.RoundTrip(req)
							if err != nil || res.StatusCode != 200 {
								t.Fatal(res, err)
							}
							res.Body.Close()
						}
						sent = 0
						got := get(&Transport{Base: base})
						most := 1
						if used == 2 {
							most = 2
						}
						if got.status != 429 || sent > most {
							t.Errorf("%+v after %d tries", got, sent)
						}
					})
				})
			}
		}
	}
}

// Once a server accepts almost nothing, most requests are not sent; when it accepts again, all
// are, soon.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, sent := true, 0
		_, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if sent++; down {
				w.WriteHeader(503)
			}
		})
		tr := &Transport{Base: base}
		phase := func(length time.Duration) (rejected int) {
			sent = 0
			for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if a := get(tr); errors.Is(a.err, ErrThrottled) {
					rejected++
				}
			}
			return rejected
		}
		if rejected := phase(time.Minute); sent > 200 || sent < 60 || rejected+sent != 6000 {
			t.Errorf("%d of 6000 were sent, and %d rejected", sent, rejected)
		}
		down = false
		phase(20 * time.Second)
		if rejected := phase(10 * time.Second); rejected != 0 || sent != 1000 {
			t.Errorf("half a minute later, %d are sent and %d rejected", sent, rejected)
		}
	})
	synctest.Test(t, func(t *testing.T) { // more than half of the requests pass: nothing is excess
		n := 0
		_, base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n%3 == 0 {
				w.WriteHeader(503)
			}
		})
		tr := &Transport{Base: base}
		rejected := 0
		for range 1000 {
			if get(tr).err != nil {
				rejected++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if rejected > 0 {
			t.Errorf("%d of 1000 are rejected", rejected)
		}
	})
}

// However many hosts there are, memory is bounded, and those that hold requests back are kept.
func TestHostsAreBounded(t *testing.T) {
	var all hosts
	const most = 100
	now := testNow
	for i := range 20 {
		all.find(fmt.Sprint("stopped ", i), most, now).stop(now.Add(time.Hour))
	}
	for i := range 10_000 {
		now = now.Add(time.Millisecond)
		all.find(fmt.Sprint("host ", rand.IntN(5000), i%7), most, now)
		if len(all.byKey) > most {
			t.Fatalf("%d hosts are remembered", len(all.byKey))
		}
	}
	for i := range 20 {
		if all.find(fmt.Sprint("stopped ", i), most, now).stoppedFor(now) <= 0 {
			t.Errorf("stop %d is forgotten", i)
		}
	}
	now = now.Add(2 * time.Hour) // over by now
	for i := range most {
		all.find(fmt.Sprint("new ", i), most, now)
	}
	if len(all.byKey) != most {
		t.Errorf("%d hosts are remembered", len(all.byKey))
	}
	for i := range 20 {
		if all.byKey[fmt.Sprint("stopped ", i)] != nil {
			t.Errorf("stop %d is remembered, and over", i)
		}
	}
}

// Key tells apart what has limits of its own.
func TestKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Account") == "a" {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(429)
			}
		})
		tr := &Transport{Base: base, MaxTries: 1, Key: func(r *http.Request) string { return r.Header.Get("Account") }}
		ask := func(account string) (time.Duration, error) {
			began := time.Now()
			req, _ := http.NewRequest("GET", "http://api.example.com/", nil)
			req.Header.Set("Account", account)
			res, err := tr.RoundTrip(req)
			if err == nil {
				res.Body.Close()
			}
			return time.Since(began), err
		}
		for _, account := range []string{"a", "b"} {
			if took, err := ask(account); took != 0 || err != nil {
				t.Errorf("%s: %s, %v", account, took, err)
			}
		}
		if took, err := ask("b"); took != 0 || err != nil {
			t.Errorf("b again: %s, %v", took, err)
		}
		if took, err := ask("a"); took < 30*time.Second || err != nil {
			t.Errorf("a again: %s, %v", took, err)
		}
	})
}
