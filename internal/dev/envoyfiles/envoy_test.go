package envoyfiles

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/rules/envoy"
)

// rulesOf returns the domain of deploy/envoy/rules.yaml.
func rulesOf(t *testing.T, domain string) *envoy.Domain {
	t.Helper()
	text, err := os.ReadFile(folder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := envoy.Load([]envoy.File{{Name: "rules.yaml", Text: text}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := set.Domain(domain)
	if d == nil {
		t.Fatalf("rules.yaml has no domain %q", domain)
	}
	return d
}

// checkFilter holds the filter to what docs/envoy.md says of it.
func checkFilter(t *testing.T, f *filter.RateLimit) {
	t.Helper()
	call := f.GetRateLimitService().GetGrpcService()
	if f.GetTimeout().AsDuration() != 20*time.Millisecond || call.GetTimeout().AsDuration() != 20*time.Millisecond || f.GetFailureModeDeny() ||
		f.GetRateLimitService().GetTransportApiVersion() != core.ApiVersion_V3 {
		t.Errorf("filter: %v", f)
	}
}

// checkActions holds the descriptors that Envoy would send to the rules.
func checkActions(t *testing.T, d *envoy.Domain, all []*route.RateLimit) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no actions")
	}
	done := 0
	for _, r := range all {
		var entries []envoy.Entry
		for _, a := range r.GetActions() {
			switch s := a.GetActionSpecifier().(type) {
			case *route.RateLimit_Action_RemoteAddress_:
				entries = append(entries, envoy.Entry{Key: "remote_address", Value: "203.0.113.7"})
			case *route.RateLimit_Action_GenericKey_:
				key := s.GenericKey.GetDescriptorKey()
				if key == "" {
					key = "generic_key"
				}
				entries = append(entries, envoy.Entry{Key: key, Value: s.GenericKey.GetDescriptorValue()})
			case *route.RateLimit_Action_RequestHeaders_:
				entries = append(entries, envoy.Entry{Key: s.RequestHeaders.GetDescriptorKey(), Value: "x"})
			default:
				t.Fatalf("an action that this test does not know: %T", s)
			}
		}
		rule := d.Find(entries)
		if rule == nil || len(rule.Limits) == 0 {
			t.Errorf("nothing limits %v", entries)
		}
		if r.GetApplyOnStreamDone() {
			done++
			asks := slices.ContainsFunc(all, func(other *route.RateLimit) bool {
				return !other.GetApplyOnStreamDone() && other.GetHitsAddend().GetNumber() != nil && sameActions(other, r)
			})
			if !asks || r.GetHitsAddend().GetFormat() == "" {
				t.Errorf("%v is charged at the end, and nothing asks at the beginning", entries)
			}
		}
	}
	if done == 0 {
		t.Error("nothing is charged at the end of a stream")
	}
}

func sameActions(a, b *route.RateLimit) bool {
	return slices.EqualFunc(a.GetActions(), b.GetActions(), func(x, y *route.RateLimit_Action) bool { return proto.Equal(x, y) })
}

func TestEnvoy(t *testing.T) {
	all := documents(t, "envoy.yaml")
	if len(all) != 1 {
		t.Fatalf("%d documents", len(all))
	}
	var b bootstrap.Bootstrap
	decode(t, "envoy.yaml", all[0], &b, false)
	m := b.ProtoReflect()
	filters := find[*filter.RateLimit](t, m)
	if len(filters) != 1 {
		t.Fatalf("%d filters", len(filters))
	}
	checkFilter(t, filters[0])
	checkActions(t, rulesOf(t, filters[0].GetDomain()), find[*route.RateLimit](t, m))
	for _, h := range find[*hcm.HttpConnectionManager](t, m) {
		if !h.GetUseRemoteAddress().GetValue() || h.GetHttpFilters()[len(h.GetHttpFilters())-1].GetName() != "envoy.filters.http.router" {
			t.Errorf("%v", h)
		}
	}
	// hits_addend has no effect anywhere else.
	for _, v := range find[*route.VirtualHost](t, m) {
		if len(v.GetRateLimits()) > 0 {
			t.Error("rate_limits of a virtual host")
		}
		for _, r := range v.GetRoutes() {
			if len(r.GetRoute().GetRateLimits()) > 0 {
				t.Error("rate_limits of a route")
			}
		}
	}
	c, problems := config.Load(config.Options{File: folder + "tidegate.yaml", Environ: []string{}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	named := filters[0].GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName()
	for _, k := range find[*cluster.Cluster](t, m) {
		if k.GetName() != named {
			continue
		}
		at := find[*core.SocketAddress](t, k.ProtoReflect())
		if len(at) != 1 || fmt.Sprintf("%s:%d", at[0].GetAddress(), at[0].GetPortValue()) != c.Listen.RLS.Address {
			t.Errorf("Envoy asks at %v, and Tidegate listens on %v", at, c.Listen.RLS)
		}
		return
	}
	t.Errorf("there is no cluster %q", named)
}
