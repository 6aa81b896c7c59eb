package client

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// three are limits of three calls, for longer than a test lasts.
func three() []*tidegate.Limit {
	specs := []tidegate.Spec{{Algorithm: tidegate.Quota, Calendar: tidegate.Year}}
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		specs = append(specs, tidegate.Spec{Algorithm: a, Period: 24 * time.Hour})
	}
	var all []*tidegate.Limit
	for _, spec := range specs {
		spec.Name, spec.Events = "calls", 3
		all = append(all, tidegate.MustLimit(spec))
	}
	return all
}

// A call whose context has ended before it is asked for is not charged.
func TestProviderChargesNobodyWhoHasLeft(t *testing.T) {
	for _, limit := range three() {
		synctest.Test(t, func(t *testing.T) {
			_, base := serve(t, newScript(says(200)).serve)
			p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{limit}, Base: base, MaxWait: -1})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for range 10 {
				req, _ := http.NewRequestWithContext(ended, http.MethodGet, "http://api.example.com/", nil)
				if _, err := p.RoundTrip(req); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", limit, err)
				}
			}
			if limit.Algorithm == tidegate.LeakyBucket {
				if a := get(p); a.status != 200 { // one at a time
					t.Errorf("%s: %+v", limit, a)
				}
				return
			}
			for i := range 3 {
				if a := get(p); a.status != 200 {
					t.Errorf("%s: call %d: %+v", limit, i, a)
				}
			}
		})
	}
}

// A call that a Provider below another did not send is given back to the upper one, except for
// a turn in a bucket.
func TestProviderBelowAnother(t *testing.T) {
	for _, limit := range three() {
		if isBucket(limit) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			_, base := serve(t, newScript(says(200)).serve)
			account := "a"
			lower := mustProvider(t, ProviderOptions{
				Name: "account", Store: memory.New(), Base: base, MaxWait: -1,
				Limits: []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{Events: 1, Algorithm: tidegate.Quota, Calendar: tidegate.Year})},
				Key:    func(*http.Request) string { return account },
			})
			upper := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{limit}, Base: lower, MaxWait: -1})
			for range 10 {
				get(upper)
			}
			for _, account = range []string{"b", "c"} {
				if a := get(upper); a.status != 200 {
					t.Errorf("%s: %+v", limit, a)
				}
			}
			account = "d"
			if a := get(upper); !errors.Is(a.err, ErrLimit) {
				t.Errorf("%s: a fourth call: %+v", limit, a)
			}
		})
	}
}

// A request that was refused, and for whose retry a Provider has no room, was sent: it gets its
// refusal, and no RefusedError.
func TestRetryWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(says(200), says(429, "Retry-After: 1"))
		_, base := serve(t, s.serve)
		limit := tidegate.MustLimit(tidegate.Spec{Events: 2, Algorithm: tidegate.Quota, Calendar: tidegate.Year})
		p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{limit}, Base: base})
		tr := p.Transport()
		if a := get(tr); a.status != 200 {
			t.Errorf("%+v", a)
		}
		if a := get(tr); a.status != 429 || a.body != "answer 429" || len(s.at) != 2 {
			t.Errorf("%+v after %d calls", a, len(s.at))
		}
		var refused *RefusedError
		if a := get(tr); !errors.As(a.err, &refused) || len(s.at) != 2 {
			t.Errorf("%+v after %d calls", a, len(s.at))
		}
	})
}

// A request without a URL is for the base to refuse.
func TestProviderWithoutURL(t *testing.T) {
	p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: []*tidegate.Limit{paced(1, time.Second)}})
	if res, err := p.RoundTrip(&http.Request{Method: http.MethodGet}); err == nil {
		t.Errorf("%v", res)
	}
}

// panics is a transport that does what it is called.
type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("broken") }

// A slot is given back when what sends the call panics, or who is told of its events: it would be
// renewed for as long as the program runs.
func TestPanicFreesSlotOfProvider(t *testing.T) {
	slots := tidegate.MustLimit(tidegate.Spec{Name: "at-a-time", Events: 1, Period: time.Minute, Algorithm: tidegate.Concurrency})
	f := func(name string, o ProviderOptions) {
		t.Helper()
		store := memory.New()
		o.Store, o.Limits = store, []*tidegate.Limit{slots}
		p := mustProvider(t, o)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is lost", name)
				}
			}()
			get(p)
		}()
		d, err := store.Take(t.Context(), []tidegate.Check{{Key: tidegate.Key("api"), Limit: slots}}, 1)
		if err != nil || d.Remaining != 1 {
			t.Errorf("%s: %d of 1 slots are free, %v", name, d.Remaining, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, base := serve(t, newScript(says(429, "Retry-After: 1")).serve)
		f("Base", ProviderOptions{Base: panics{}})
		f("OnEvent", ProviderOptions{Base: base, OnEvent: func(*http.Request, Event) { panic("broken") }})
	})
}

// An http.Client closes idle connections through the Transport and the Provider.
func TestCloseIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, base := serve(t, newScript(says(200)).serve)
		p := mustProvider(t, ProviderOptions{Store: memory.New(), Limits: three()[:1], Base: base})
		for i, rt := range []http.RoundTripper{&Transport{Base: base}, p, p.Transport()} {
			if a := get(rt); a.status != 200 || len(network.open) != i+1 {
				t.Errorf("%T: %+v, %d connections", rt, a, len(network.open))
			}
			(&http.Client{Transport: rt}).CloseIdleConnections()
			synctest.Wait()
		}
	})
	(&http.Client{Transport: &Transport{Base: panics{}}}).CloseIdleConnections() // has none
}
