package telemetry

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pageOf is what a registry shows.
func pageOf(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// Metrics have the names and labels that envoyproxy/ratelimit's exporter maps them to.
func TestEnvoyProxyNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	e := New(reg, "memory").NewEnvoyProxy(func() (ok, failed int) { return 3, 1 })
	e.Hits("mongo_cps", "mongo_cps.database_default", EnvoyHits{Total: 5, Within: 4, Over: 1, Near: 1})
	e.Hits("rl", "rl.a_1.b.c_2", EnvoyHits{Total: 2, Within: 2, Shadow: 1, Remembered: 1})
	e.Hits("edge", "edge.remote_address_192.0.2.7", EnvoyHits{Total: 1})
	e.Hits("edge", "edge.remote_address_192_0_2_7", EnvoyHits{Total: 1}) // reads the same
	e.Hits("edge", "edge.remote_address_2001:db8::7|x", EnvoyHits{Total: 1})
	e.Failed()
	e.UnknownDomain()
	e.Answered(time.Millisecond)
	page := pageOf(t, reg)
	for _, line := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="mongo_cps",key1="database_default",key2=""} 5`,
		`ratelimit_service_rate_limit_over_limit{domain="mongo_cps",key1="database_default",key2=""} 1`,
		`ratelimit_service_rate_limit_near_limit{domain="mongo_cps",key1="database_default",key2=""} 1`,
		`ratelimit_service_rate_limit_within_limit{domain="mongo_cps",key1="database_default",key2=""} 4`,
		`ratelimit_service_rate_limit_shadow_mode{domain="rl",key1="a_1",key2="b.c_2"} 1`,
		`ratelimit_service_rate_limit_over_limit_with_local_cache{domain="rl",key1="a_1",key2="b.c_2"} 1`,
		`ratelimit_service_rate_limit_total_hits{domain="edge",key1="remote_address_192_0_2_7",key2=""} 2`,
		`ratelimit_service_rate_limit_total_hits{domain="edge",key1="remote_address_2001_db8__7_x",key2=""} 1`,
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 1`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 1`,
		`ratelimit_service_config_load_success 3`,
		`ratelimit_service_config_load_error 1`,
		`ratelimit_service_rate_limit_domain_not_found 1`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
}

// However many keys there are, the page has its bound, and nothing is lost.
func TestTrap15EnvoyProxyKeysAreBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	e := New(reg, "memory").NewEnvoyProxy(func() (ok, failed int) { return 1, 0 })
	e.all.Store(func() *map[envoyKey]*envoyHits { // all but one
		all := make(map[envoyKey]*envoyHits)
		for i := range maxEnvoyKeys - 1 {
			all[envoyKey{"d", fmt.Sprintf("d.k_%d", i)}] = new(envoyHits)
		}
		return &all
	}())
	for i := range 500 {
		e.Hits("d", fmt.Sprintf("d.new_%d", i), EnvoyHits{Total: 1})
	}
	if n := len(*e.all.Load()); n > maxEnvoyKeys+1 {
		t.Errorf("%d keys", n)
	}
	page := pageOf(t, reg)
	if want := fmt.Sprintf("ratelimit_service_rate_limit_total_hits{domain=%q,key1=\"\",key2=\"\"} 499\n", Other); !strings.Contains(page, want) {
		t.Errorf("there is no %s", want)
	}
}

// What differs is counted by rule, and by domain where there is none.
func TestCompared(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := New(reg, "memory").NewCompared(func() (skipped, failed uint64) { return 7, 8 })
	c.Told("d", "d.k", true)
	c.Told("d", "d.k", false)
	c.Told("d", "d.k", false)
	c.Told("native", "", true)
	page := pageOf(t, reg)
	for _, line := range []string{
		`tidegate_rls_compared_total{answer="same",rule="d.k"} 1`, `tidegate_rls_compared_total{answer="different",rule="d.k"} 2`,
		`tidegate_rls_compared_total{answer="same",rule="native"} 1`,
		`tidegate_rls_uncompared_total{why="skipped"} 7`, `tidegate_rls_uncompared_total{why="failed"} 8`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
}
