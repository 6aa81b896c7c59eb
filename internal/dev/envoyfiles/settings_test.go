package envoyfiles

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/config"
)

// variables are the environment variables of envoyproxy/ratelimit, of its module of January
// 2026 (v1.4.1-0.20260122083618-3fb702589d36).
var variables = strings.Fields(`
	HOST PORT DEBUG_HOST DEBUG_PORT GRPC_UDS GRPC_HOST GRPC_PORT GRPC_MAX_CONNECTION_AGE
	GRPC_MAX_CONNECTION_AGE_GRACE GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY
	GRPC_CLIENT_TLS_CACERT GRPC_CLIENT_TLS_SAN LOG_LEVEL LOG_FORMAT CONFIG_TYPE
	FORCE_START_WITHOUT_INITIAL_CONFIG CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA
	CONFIG_GRPC_XDS_SERVER_URL CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL
	CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_SERVER_USE_TLS CONFIG_GRPC_XDS_CLIENT_TLS_CERT
	CONFIG_GRPC_XDS_CLIENT_TLS_KEY CONFIG_GRPC_XDS_SERVER_TLS_CACERT CONFIG_GRPC_XDS_SERVER_TLS_SAN
	XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL XDS_CLIENT_BACKOFF_RANDOM_FACTOR
	XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES USE_DOG_STATSD USE_DOG_STATSD_MOGRIFIERS
	USE_STATSD STATSD_HOST STATSD_PORT EXTRA_TAGS STATS_FLUSH_INTERVAL DISABLE_STATS USE_PROMETHEUS
	PROMETHEUS_ADDR PROMETHEUS_PATH PROMETHEUS_MAPPER_YAML RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY
	RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT EXPIRATION_JITTER_MAX_SECONDS LOCAL_CACHE_SIZE_IN_BYTES
	NEAR_LIMIT_RATIO CACHE_KEY_PREFIX BACKEND_TYPE STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT
	LIMIT_RESPONSE_HEADERS_ENABLED LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER LIMIT_RESET_HEADER
	HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED REDIS_SOCKET_TYPE REDIS_TYPE REDIS_URL REDIS_POOL_SIZE REDIS_AUTH
	REDIS_TLS REDIS_TLS_CLIENT_CERT REDIS_TLS_CLIENT_KEY REDIS_TLS_CACERT REDIS_TLS_SKIP_HOSTNAME_VERIFICATION
	REDIS_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT REDIS_PERSECOND REDIS_PERSECOND_SOCKET_TYPE REDIS_PERSECOND_TYPE
	REDIS_PERSECOND_URL REDIS_PERSECOND_POOL_SIZE REDIS_PERSECOND_AUTH REDIS_PERSECOND_TLS REDIS_SENTINEL_AUTH
	REDIS_PERSECOND_SENTINEL_AUTH REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PERSECOND_PIPELINE_LIMIT
	REDIS_HEALTH_CHECK_ACTIVE_CONNECTION REDIS_TIMEOUT REDIS_PERSECOND_TIMEOUT REDIS_POOL_ON_EMPTY_BEHAVIOR
	REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV
	MEMCACHE_SRV_REFRESH MEMCACHE_TLS MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_CACERT
	MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION SHADOW_MODE QUOTA_MODE RESPONSE_DYNAMIC_METADATA MERGE_DOMAIN_CONFIG
	TRACING_ENABLED TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE TRACING_SERVICE_INSTANCE_ID
	TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE
`)

var (
	row     = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (mapped|not needed|not offered) \\| (.*) \\|$")
	quoted  = regexp.MustCompile("`([^`]+)`")
	setting = regexp.MustCompile(`^(rules|store|listen|rls|xds|log|admin)(\.[a-z_]+)*(:|$)`)
)

// The table of docs/envoy.md has every variable once, and names settings that there are.
func TestSettings(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "<!-- settings:begin -->")
	page, _, ok := strings.Cut(page, "<!-- settings:end -->")
	if !ok {
		t.Fatal("the table is not marked")
	}
	known := map[string]bool{}
	for _, s := range new(config.Config).Settings() {
		known[s.Path] = true
	}
	var found []string
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		name, what, text := m[1], m[2], m[3]
		found = append(found, name)
		named := 0
		for _, q := range quoted.FindAllStringSubmatch(text, -1) {
			if !setting.MatchString(q[1]) {
				continue
			}
			path, _, _ := strings.Cut(q[1], ":")
			if !known[path] {
				t.Errorf("%s: there is no setting `%s`", name, path)
			}
			named++
		}
		plain := named == 0 && !strings.Contains(text, "`")
		if what == "mapped" && plain && !slices.Contains([]string{"LIMIT_RESPONSE_HEADERS_ENABLED"}, name) {
			t.Errorf("%s is mapped to nothing", name)
		}
	}
	if rows := strings.Count(page, "\n| `"); rows != len(found) {
		t.Errorf("%d rows, of which %d can be read", rows, len(found))
	}
	slices.Sort(found)
	want := slices.Sorted(slices.Values(variables))
	if !slices.Equal(found, want) {
		for _, v := range want {
			if !slices.Contains(found, v) {
				t.Errorf("%s is not in the table", v)
			}
		}
		for i, v := range found {
			if !slices.Contains(want, v) || i > 0 && found[i-1] == v {
				t.Errorf("%s is in the table", v)
			}
		}
	}
	if len(want) != 108 {
		t.Errorf("%d variables", len(want))
	}
}
