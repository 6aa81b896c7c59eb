package client

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// While a host is stopped, nobody asks it, and other hosts are asked.
func TestStopsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(says(429, "Retry-After: 10"), says(200))
		_, base := serve(t, s.serve)
		tr := &Transport{Base: base}
		results := make(chan answer)
		go func() { results <- get(tr) }()
		synctest.Wait()
		for range 5 {
			go func() { results <- get(tr) }()
		}
		synctest.Wait()
		req, _ := http.NewRequest("GET", "http://other.example.com/", nil)
		if res, err := tr.RoundTrip(req); err != nil || res.StatusCode != 200 {
			t.Errorf("another host: %v, %v", res, err)
		} else {
			res.Body.Close()
		}
		for range 6 {
			if a := <-results; a.status != 200 || a.took < 10*time.Second {
				t.Errorf("%+v", a)
			}
		}
		for _, at := range s.at[2:] {
			if at < 10*time.Second {
				t.Errorf("asked after %s", at)
			}
		}
	})
}

// A request that waits for its turn when a stop begins waits for the end of the stop.
func TestStopWhileOthersArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		little := says(200, "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 20")
		s := newScript(little, little, says(429, "Retry-After: 30"), says(200))
		_, base := serve(t, s.serve)
		tr := &Transport{Base: base}
		get(tr)
		results := make(chan answer)
		for range 3 { // after 10 s, 20 s and a little more
			go func() { results <- get(tr) }()
		}
		for range 3 {
			if a := <-results; a.status != 200 {
				t.Errorf("%+v", a)
			}
		}
		stopped := s.at[2]
		for _, at := range s.at[3:] {
			if at < stopped+30*time.Second {
				t.Errorf("stopped after %s for 30 s, asked after %s", stopped, at)
			}
		}
		if len(s.at) != 5 {
			t.Errorf("asked %d times, at %s", len(s.at), s.at)
		}
	})
}
