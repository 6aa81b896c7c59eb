package telemetry

import (
	"maps"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// EnvoyProxy counts under the names of envoyproxy/ratelimit, as its Prometheus exporter maps them
// by default, so that existing dashboards keep working.
type EnvoyProxy struct {
	took    prometheus.Observer
	failed  atomic.Uint64
	calls   atomic.Uint64
	unknown atomic.Uint64

	mu  sync.Mutex
	all atomic.Pointer[map[envoyKey]*envoyHits] // replaced, never modified
}

// envoyKey identifies the series of a rule.
type envoyKey struct{ domain, key string }

// EnvoyHits counts hits by result.
type EnvoyHits struct {
	Total, Over, Near, Within, Remembered, Shadow uint64
}

type envoyHits struct {
	total, over, near, within, remembered, shadow atomic.Uint64
}

// maxEnvoyKeys bounds the series. Keys come from files and, with detailed_metric, from values of
// requests; further ones are counted together as [Other].
const maxEnvoyKeys = 4096

// NewEnvoyProxy returns an EnvoyProxy and registers it; it may be called once. loads returns how
// often rules were loaded, and how often that failed.
func (m *Metrics) NewEnvoyProxy(loads func() (ok, failed int)) *EnvoyProxy {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ratelimit_service_response_time_seconds", Help: "Time to answer a call, as envoyproxy/ratelimit names it.", Buckets: decades(1e-5, 1),
	}, []string{"grpc_method"})
	e := &EnvoyProxy{took: took.WithLabelValues(shouldRateLimit)}
	e.all.Store(&map[envoyKey]*envoyHits{})
	m.reg.MustRegister(took, envoyCollector{e, loads})
	return e
}

const shouldRateLimit = "ShouldRateLimit"

// Answered counts a call.
func (e *EnvoyProxy) Answered(took time.Duration) {
	e.calls.Add(1)
	e.took.Observe(took.Seconds())
}

// Failed counts a call that was answered with an error.
func (e *EnvoyProxy) Failed() { e.failed.Add(1) }

// UnknownDomain counts a call with a domain that no file has.
func (e *EnvoyProxy) UnknownDomain() { e.unknown.Add(1) }

// Hits counts the hits of one descriptor. key is the metric key of its rule, which begins with
// the domain.
func (e *EnvoyProxy) Hits(domain, key string, h EnvoyHits) {
	at := (*e.all.Load())[envoyKey{domain, key}]
	if at == nil {
		at = e.add(envoyKey{domain, key})
	}
	at.total.Add(h.Total)
	at.within.Add(h.Within)
	for _, rare := range []struct {
		to *atomic.Uint64
		n  uint64
	}{{&at.over, h.Over}, {&at.near, h.Near}, {&at.remembered, h.Remembered}, {&at.shadow, h.Shadow}} {
		if rare.n > 0 {
			rare.to.Add(rare.n)
		}
	}
}

func (e *EnvoyProxy) add(k envoyKey) *envoyHits {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := *e.all.Load()
	if before[k] == nil && len(before) >= maxEnvoyKeys {
		k = envoyKey{Other, Other}
	}
	if at := before[k]; at != nil {
		return at
	}
	after := maps.Clone(before)
	at := new(envoyHits)
	after[k] = at
	e.all.Store(&after)
	return at
}

var (
	envoyTotal      = envoyDesc("total_hits", "Hits of a rule.")
	envoyOver       = envoyDesc("over_limit", "Hits of a rule above its limit.")
	envoyNear       = envoyDesc("near_limit", "Hits of a rule above 80 % of its limit that were admitted.")
	envoyWithin     = envoyDesc("within_limit", "Hits of a rule that were admitted.")
	envoyRemembered = envoyDesc("over_limit_with_local_cache", "Hits of a rule that were refused without asking the store.")
	envoyShadow     = envoyDesc("shadow_mode", "Hits of a rule in shadow mode that would have been refused.")
	envoyUnknown    = describe("ratelimit_service_rate_limit_domain_not_found", "Calls whose domain no file has.")
	envoyFailed     = describe("ratelimit_service_should_rate_limit_error", "Calls that were answered by an error.", "err_type")
	envoyCalls      = describe("ratelimit_service_total_requests", "Calls.", "grpc_method")
	envoyLoaded     = describe("ratelimit_service_config_load_success", "Loads of the rules.")
	envoyNotLoaded  = describe("ratelimit_service_config_load_error", "Loads of the rules that failed.")
)

func envoyDesc(name, help string) *prometheus.Desc {
	return describe("ratelimit_service_rate_limit_"+name, help, "domain", "key1", "key2")
}

// envoyCollector exports the counts.
type envoyCollector struct {
	*EnvoyProxy
	loads func() (ok, failed int)
}

// Describe implements [prometheus.Collector].
func (c envoyCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		envoyTotal, envoyOver, envoyNear, envoyWithin, envoyRemembered, envoyShadow, envoyUnknown, envoyFailed, envoyCalls, envoyLoaded, envoyNotLoaded,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c envoyCollector) Collect(ch chan<- prometheus.Metric) {
	emit := func(d *prometheus.Desc, n uint64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, counter, float64(n), labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		ch <- m
	}
	sums := make(map[[3]string]EnvoyHits) // of keys with equal labels
	for k, at := range *c.all.Load() {
		key1, key2 := envoyLabels(k)
		name := [3]string{k.domain, key1, key2}
		sum := sums[name]
		sums[name] = EnvoyHits{
			Total: sum.Total + at.total.Load(), Over: sum.Over + at.over.Load(), Near: sum.Near + at.near.Load(),
			Within: sum.Within + at.within.Load(), Remembered: sum.Remembered + at.remembered.Load(), Shadow: sum.Shadow + at.shadow.Load(),
		}
	}
	for name, h := range sums {
		emit(envoyTotal, h.Total, name[:]...)
		emit(envoyOver, h.Over, name[:]...)
		emit(envoyNear, h.Near, name[:]...)
		emit(envoyWithin, h.Within, name[:]...)
		emit(envoyRemembered, h.Remembered, name[:]...)
		emit(envoyShadow, h.Shadow, name[:]...)
	}
	ok, failed := c.loads()
	emit(envoyUnknown, c.unknown.Load())
	emit(envoyFailed, c.failed.Load(), "service_error")
	emit(envoyCalls, c.calls.Load(), shouldRateLimit)
	emit(envoyLoaded, uint64(ok))
	emit(envoyNotLoaded, uint64(failed))
}

var ipv4 = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// envoyLabels splits a metric key into its first entry and the rest. Colons and bars, and the dots
// of addresses, become _, as in that exporter.
func envoyLabels(k envoyKey) (key1, key2 string) {
	key := strings.TrimPrefix(strings.TrimPrefix(k.key, k.domain), ".")
	key = strings.NewReplacer(":", "_", "|", "_").Replace(key)
	key = ipv4.ReplaceAllStringFunc(key, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
	key1, key2, _ = strings.Cut(key, ".")
	return key1, key2
}
