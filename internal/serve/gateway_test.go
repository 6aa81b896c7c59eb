package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
)

// Every limit that the gateway knows can be set, and none is mistaken for another.
func TestLimitsReachTheGateway(t *testing.T) {
	c := &config.Config{Limits: config.Limits{
		Header: 1, HeaderLines: 2, URI: 3, Body: 4, ReadHeader: 5, Read: 6, Write: 7, Idle: 8, Stall: 9, Tunnel: 13, Upstream: 10,
		Connections: 11, Requests: 12,
	}}
	got := (&server{config: c, heir: &handover.Heir{}}).gatewayOptions().Limits
	want := gateway.Limits{
		HeaderBytes: 1, HeaderLines: 2, URI: 3, Body: 4, ReadHeader: 5, Read: 6, Write: 7, Idle: 8, Stall: 9, Tunnel: 13, Upstream: 10,
		Connections: 11, Requests: 12,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range reflect.TypeFor[gateway.Limits]().NumField() {
		if reflect.ValueOf(got).Field(i).IsZero() {
			t.Errorf("%s cannot be set", reflect.TypeFor[gateway.Limits]().Field(i).Name)
		}
	}
	c.Limits.Stall, c.Limits.Tunnel, c.Limits.Upstream = 0, 0, 0
	if got := (&server{config: c, heir: &handover.Heir{}}).gatewayOptions().Limits; got.Stall != -time.Nanosecond || got.Tunnel != -time.Nanosecond || got.Upstream != -time.Nanosecond {
		t.Errorf("0 means %s, %s and %s, want any", got.Stall, got.Tunnel, got.Upstream)
	}
}

// An upstream that answers is not slow, whatever else is open there; one that does not answer is, even if
// nothing tells of it.
func TestSlownessOfUpstreams(t *testing.T) {
	answered, failed := gateway.Try{Status: 200, Took: time.Millisecond}, gateway.Try{Err: errors.New("refused"), Took: time.Millisecond}
	left := gateway.Try{Err: context.Canceled, Took: time.Millisecond}
	again := gateway.Try{Status: 200, Took: time.Millisecond, Retry: true}
	f := func(what string, silent bool, tries ...gateway.Try) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			o := observer{telemetry.New(prometheus.NewRegistry(), "memory"), pressure.New()}
			for range 3 {
				o.inflight(+1)
				for _, try := range tries {
					o.Tried(try)
				}
			}
			time.Sleep(time.Minute) // they stay open
			p99, ok := o.signals.Recent(pressure.UpstreamP99)
			if !ok || silent != (p99 >= 59) || !silent && p99 > 0 {
				t.Errorf("%s: upstream_p99 is %v, %t", what, p99, ok)
			}
		})
	}
	f("no answer", true)
	f("answered, and open", false, answered)
	f("failed", false, failed)
	f("answered by another", false, failed, again)
	f("left", false, left)
}

// The process ends when the requests that were cut off are in the access log, or after a second, also those of
// a gateway whose place another has taken.
func TestCutRequestsAreAwaited(t *testing.T) {
	for which := range 3 {
		for takes, want := range map[time.Duration]time.Duration{0: 0, cutOff / 2: cutOff / 2, time.Minute: cutOff} {
			synctest.Test(t, func(t *testing.T) {
				var s server
				for range 3 {
					g, err := gateway.New(gateway.Options{
						Upstreams: []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}},
						OwnPath:   "/own", Own: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }),
					})
					if err != nil {
						t.Fatal(err)
					}
					defer g.Close()
					s.gateway.opened = append(s.gateway.opened, g)
				}
				go s.gateway.opened[which].ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/own", nil))
				synctest.Wait()
				start := time.Now()
				s.awaitCut()
				if waited := time.Since(start); waited < want || waited > want+time.Millisecond {
					t.Errorf("gateway %d, a request of %s: %s are waited", which, takes, waited)
				}
				time.Sleep(takes)
			})
		}
	}
}
