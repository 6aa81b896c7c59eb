package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"
)

// The instances are listed as the description says, with everything that can be known of one
// and with nothing of one that tells nothing.
func TestFleet(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	want := Fleet{
		Instances: []Instance{
			{ID: "OLD"},
			{
				ID: "A", Self: true, Known: true, Name: "web-1:42", Version: "v1", Rules: "0123456789abcdef", Started: now, Seen: now,
				Clock:   &Clock{Offset: -1.5, Within: 0.001, Server: "10.0.0.1:6379", Off: true},
				Circuit: &Circuit{Status: "partial", Since: now, Servers: []string{"10.0.0.2:6379"}, Count: 3},
				Backlog: 1, Leases: 2, LeasedEvents: 300, Lag: 0.1, Counts: 4, Share: 0.25,
			},
		},
		Incomplete: "10.0.0.2:6379: no answer", Warnings: []string{"look"},
	}
	err := errors.New("redis: connection refused")
	d := newDesk(t, "rules: []\n", func(o *Options) {
		o.Fleet = func(context.Context) (Fleet, error) { return want, err }
	})
	problem(t, d.ask("GET", "/fleet", ""), http.StatusServiceUnavailable, "The store does not say who shares the counters: redis: connection refused.")
	err = nil
	w := d.ask("GET", "/fleet", "")
	var got Fleet
	if w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &got) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	problem(t, d.ask("POST", "/fleet", "{}"), http.StatusMethodNotAllowed, "/fleet takes GET, HEAD, not POST.")
	problem(t, d.ask("GET", "/fleet", "", func(r *http.Request) { r.RemoteAddr = "192.0.2.1:1" }), http.StatusForbidden, "only this machine may ask")

	alone := newDesk(t, "rules: []\n", nil)
	problem(t, alone.ask("GET", "/fleet", ""), http.StatusNotFound, "there is no fleet that shares them")
}

// /healthz shows the offset of the clock, zero included, if it is known.
func TestHealthShowsTheClock(t *testing.T) {
	var offset *float64
	d := newDesk(t, "rules: []\n", func(o *Options) {
		o.Health = func() Health { return Health{Status: "ok", ClockOffset: offset} }
	})
	f := func(want any) {
		t.Helper()
		var is map[string]any
		if w := d.ask("GET", "/healthz", ""); json.Unmarshal(w.Body.Bytes(), &is) != nil || is["clock_offset_seconds"] != want {
			t.Errorf("%s, want %v", w.Body, want)
		}
	}
	f(nil)
	for _, s := range []float64{0, -0.25, 3600} {
		offset = &s
		f(s)
	}
}
