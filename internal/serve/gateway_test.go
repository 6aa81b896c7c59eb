package serve

import (
	"reflect"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/serve/handover"
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
