package config

import (
	"bytes"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// others has for every setting a value that is not its default.
var others = map[string]string{
	"rules":                       "other.yaml,https://config.example.com/rules.yaml",
	"rules_source.token_file":     "rules.token",
	"rules_source.user":           "tidegate",
	"rules_source.password_file":  "rules.password",
	"rules_source.ca":             "rules-ca.pem",
	"rules_source.cert":           "rules-cert.pem",
	"rules_source.key":            "rules-key.pem",
	"rules_source.copy":           "/var/lib/tidegate/rules",
	"rules_source.start":          "open",
	"rules_source.wait":           "30s",
	"listen.gateway":              ":80",
	"listen.check":                "127.0.0.1:8081",
	"listen.resp":                 "unix:/run/resp.sock",
	"listen.admin":                "unix:/run/admin.sock",
	"check.token_file":            "check.token",
	"check.deadline":              "1s",
	"check.tls.cert":              "check-cert.pem",
	"check.tls.key":               "check-key.pem",
	"check.tls.client_ca":         "callers.pem",
	"resp.users_file":             "resp.users",
	"listen.rls":                  "unix:/run/rls.sock",
	"listen.rls_http":             "unix:/run/rls-http.sock",
	"rls.deadline":                "18ms",
	"rls.max_connection_age":      "1h",
	"rls.merge_domains":           "true",
	"rls.shadow":                  "true",
	"rls.quota.ttl":               "5s",
	"rls.quota.delivery":          "250ms",
	"rls.headers.limit":           "X-Limit",
	"rls.headers.remaining":       "X-Remaining",
	"rls.headers.reset":           "X-Reset",
	"rls.dynamic_metadata":        "request",
	"rls.metrics":                 "envoyproxy",
	"rls.compare":                 "old.example.com:8081",
	"rls.tls.cert":                "rls-cert.pem",
	"rls.tls.key":                 "rls-key.pem",
	"rls.tls.client_ca":           "callers.pem",
	"xds.address":                 "plane.example.com:18000",
	"xds.node_id":                 "edge",
	"xds.metadata":                "zone=b",
	"xds.wait":                    "3s",
	"xds.start":                   "without",
	"xds.max_message":             "1MiB",
	"xds.tls.ca":                  "system",
	"xds.tls.cert":                "xds-cert.pem",
	"xds.tls.key":                 "xds-key.pem",
	"xds.tls.name":                "plane",
	"telemetry.refusals":          "7",
	"telemetry.otlp.endpoint":     "https://collector:4318/otlp/v1/traces",
	"telemetry.otlp.sample":       "12.5%",
	"telemetry.otlp.service":      "edge",
	"telemetry.otlp.headers_file": "otlp.headers",
	"resp.tls.cert":               "resp-cert.pem",
	"resp.tls.key":                "resp-key.pem",
	"resp.tls.client_ca":          "callers.pem",
	"usage":                       "/usage",
	"defer.file":                  "deferred",
	"defer.max":                   "2MiB",
	"defer.results":               "2m",
	"defer.dead":                  "3m",
	"defer.timeout":               "4s",
	"defer.takeover":              "5s",
	"defer.path":                  "/later",
	"defer.strip":                 "Cookie,Authorization",
	"defer.credentials":           "Authorization=replay.token",
	"upstreams":                   "http://127.0.0.1:9000,https://example.com/base",
	"trust.proxies":               "10.0.0.0/8,2001:db8::/32",
	"trust.unix":                  "true",
	"trust.jwt.jwks":              "https://login.example.com/jwks.json",
	"trust.jwt.refresh":           "1h",
	"trust.jwt.copy":              "/var/lib/tidegate/jwks.json",
	"trust.api_keys.from":         "bearer",
	"trust.api_keys.file":         "api-keys.csv",
	"trust.jwt.key":               "jwt.pem",
	"trust.jwt.issuer":            "https://login.example.com",
	"trust.jwt.audience":          "my api: # 1",
	"store":                       "redis",
	"store.memory.max":            "1GB",
	"store.memory.snapshot":       "/var/lib/tidegate/snapshot",
	"store.redis":                 "rediss://redis.example.com:6380/2",
	"store.shards":                "a=redis://10.0.0.1:6379,b=redis://10.0.0.2:6379",
	"store.was":                   "a",
	"store.region":                "eu",
	"store.regions":               "us=redis://10.1.0.1:6379,ap",
	"store.deadline":              "10ms",
	"store.username":              "tidegate",
	"store.password_file":         "redis.password",
	"store.instance":              "web-1",
	"tls.cert":                    "cert.pem",
	"tls.key":                     "key.pem",
	"tls.client_ca":               "ca.pem",
	"tls.client_auth":             "require",
	"limits.header":               "16KiB",
	"limits.header_lines":         "64",
	"limits.uri":                  "4KiB",
	"limits.body":                 "10MB",
	"limits.read_header":          "5s",
	"limits.read":                 "1m",
	"limits.write":                "1h30m",
	"limits.idle":                 "30s",
	"limits.stall":                "20s",
	"limits.tunnel":               "30m",
	"limits.upstream":             "1.5s",
	"limits.connections":          "1000",
	"limits.requests":             "500",
	"health.path":                 "/healthz",
	"health.every":                "1m",
	"health.timeout":              "1s",
	"health.unhealthy_after":      "1",
	"paths.encoded_slash":         "allow",
	"paths.dot_segments":          "clean",
	"paths.empty_segments":        "merge",
	"paths.case":                  "insensitive",
	"keep_alive.idle":             "5s",
	"keep_alive.connections":      "7",
	"log.access":                  "access.log",
	"log.format":                  "text",
	"log.level":                   "error",
	"admin.token_file":            "admin.token",
	"drain":                       "0",
	"store.memory.snapshot_every": "1m",
	"log.keys":                    "plain",
	"admin.tls.cert":              "admin-cert.pem",
	"admin.tls.key":               "admin-key.pem",
	"admin.tokens":                "operators",
	"admin.audit":                 "audit.log",
	"admin.state":                 "state",
	"admin.followers":             "200",
	"admin.pages":                 "1000",
	"slips.key_file":              "slips.key",
	"admin.tls.client_ca":         "operators-ca.pem",
	"admin.tls.roles":             "alice=operate,*=view",
	"admin.sso.header":            "X-Forwarded-User",
	"admin.sso.from":              "10.0.0.7/32",
	"admin.sso.roles":             "bob=rule,*=view",
}

// partners are what a setting does not go without.
var partners = map[string][]string{
	"store":                       {"store.redis"},
	"store.was":                   {"store.shards"},
	"store.region":                {"store.redis", "store.regions"},
	"store.regions":               {"store.redis", "store.region"},
	"store.deadline":              {"store.redis"},
	"store.username":              {"store.redis"},
	"store.password_file":         {"store.redis"},
	"store.instance":              {"store.redis"},
	"tls.cert":                    {"tls.key"},
	"tls.key":                     {"tls.cert"},
	"tls.client_ca":               {"tls.cert", "tls.key"},
	"tls.client_auth":             {"tls.cert", "tls.key", "tls.client_ca"},
	"trust.jwt.issuer":            {"trust.jwt.jwks"},
	"trust.jwt.refresh":           {"trust.jwt.jwks"},
	"trust.jwt.copy":              {"trust.jwt.jwks"},
	"trust.api_keys.from":         {"trust.api_keys.file"},
	"trust.jwt.audience":          {"trust.jwt.key"},
	"health.every":                {"health.path"},
	"health.timeout":              {"health.path"},
	"check.tls.cert":              {"check.tls.key"},
	"check.tls.key":               {"check.tls.cert"},
	"check.tls.client_ca":         {"check.tls.cert", "check.tls.key"},
	"resp.tls.cert":               {"resp.tls.key"},
	"xds.address":                 {"listen.rls"},
	"xds.node_id":                 {"listen.rls", "xds.address"},
	"xds.metadata":                {"listen.rls", "xds.address"},
	"xds.wait":                    {"listen.rls", "xds.address"},
	"xds.start":                   {"listen.rls", "xds.address"},
	"xds.max_message":             {"listen.rls", "xds.address"},
	"xds.tls.ca":                  {"listen.rls", "xds.address"},
	"xds.tls.cert":                {"listen.rls", "xds.address", "xds.tls.ca", "xds.tls.key"},
	"xds.tls.key":                 {"listen.rls", "xds.address", "xds.tls.ca", "xds.tls.cert"},
	"xds.tls.name":                {"listen.rls", "xds.address", "xds.tls.ca"},
	"telemetry.otlp.sample":       {"telemetry.otlp.endpoint"},
	"telemetry.otlp.service":      {"telemetry.otlp.endpoint"},
	"telemetry.otlp.headers_file": {"telemetry.otlp.endpoint"},
	"listen.rls_http":             {"listen.rls"},
	"rls.tls.cert":                {"rls.tls.key"},
	"rls.tls.key":                 {"rls.tls.cert"},
	"rls.tls.client_ca":           {"rls.tls.cert", "rls.tls.key"},
	"resp.tls.key":                {"resp.tls.cert"},
	"resp.tls.client_ca":          {"resp.tls.cert", "resp.tls.key"},
	"admin.tls.cert":              {"admin.tls.key"},
	"admin.tls.key":               {"admin.tls.cert"},
	"admin.tls.client_ca":         {"admin.tls.cert", "admin.tls.key", "admin.tls.roles"},
	"admin.tls.roles":             {"admin.tls.cert", "admin.tls.key", "admin.tls.client_ca"},
	"admin.sso.header":            {"admin.sso.from", "admin.sso.roles"},
	"admin.sso.from":              {"admin.sso.header", "admin.sso.roles"},
	"admin.sso.roles":             {"admin.sso.header", "admin.sso.from"},
	"store.memory.snapshot_every": {"store.memory.snapshot"},
	"rules_source.token_file":     {"rules"},
	"rules_source.user":           {"rules"},
	"rules_source.password_file":  {"rules", "rules_source.user"},
	"rules_source.ca":             {"rules"},
	"rules_source.cert":           {"rules", "rules_source.key"},
	"rules_source.key":            {"rules", "rules_source.cert"},
	"rules_source.copy":           {"rules"},
	"rules_source.start":          {"rules"},
	"rules_source.wait":           {"rules"},
}

// anything is a file and a folder, and is always there.
type anything struct{ fs.FileInfo }

func (anything) IsDir() bool       { return false }
func (anything) Mode() fs.FileMode { return fs.ModeIrregular }

// everywhere is a Stat for a world where all files are.
func everywhere(string) (fs.FileInfo, error) { return anything{}, nil }

// load is Load of a file, variables and flags, in a world where every file is.
func load(t testing.TB, file string, env []string, args ...string) *Config {
	t.Helper()
	c, problems := Load(Options{
		File: defaultFile, Environ: append([]string{}, env...), Flags: parseFlags(t, args...), Stat: everywhere,
		ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
	})
	if len(problems) > 0 {
		t.Fatalf("%s\n%v\n%v\n%v", file, env, args, problems)
	}
	return c
}

// inFile writes settings as a configuration file would.
func inFile(values map[string]string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(values)) {
		s, value := lookup(path), yamlText(values[path])
		if s.slot.many {
			items := strings.Split(values[path], ",")
			for i := range items {
				items[i] = yamlText(items[i])
			}
			value = "[" + strings.Join(items, ", ") + "]"
		}
		words := strings.Split(path, ".")
		b.WriteString(strings.Join(words, ": { ") + ": " + value + strings.Repeat(" }", len(words)-1) + "\n")
	}
	return b.String()
}

func TestThreeWaysAreTheSame(t *testing.T) {
	testdep.SkipUnderRace(t)
	bare := func(c *Config) Config {
		v := *c
		v.origins = nil
		return v
	}
	for _, s := range table {
		var with []string
		for _, p := range partners[s.path] {
			with = append(with, lookup(p).env()+"="+others[p])
		}
		value := others[s.path]
		file := inFile(map[string]string{s.path: value})
		none := load(t, "#", nil)
		fromFile := load(t, file, with)
		fromEnv := load(t, "#", append(with, s.env()+"="+value))
		fromFlag := load(t, "#", with, s.flag()+"="+value)
		if !reflect.DeepEqual(bare(fromFile), bare(fromEnv)) || !reflect.DeepEqual(bare(fromFile), bare(fromFlag)) {
			t.Errorf("%s: from the file, a variable and a flag:\n%+v\n%+v\n%+v", s.path, fromFile, fromEnv, fromFlag)
		}
		if reflect.DeepEqual(bare(none), bare(fromFlag)) {
			t.Errorf("%s: %q changes nothing", s.path, value)
		}
		f := func(c *Config, want, origin string) {
			t.Helper()
			i := slices.IndexFunc(c.Settings(), func(in Setting) bool { return in.Path == s.path })
			got := c.Settings()[i]
			if got.Value != want || !strings.HasPrefix(got.Origin, origin) {
				t.Errorf("%s: got %q from %q, want %q from %q", s.path, got.Value, got.Origin, want, origin)
			}
		}
		f(fromFile, value, "tidegate.yaml:1:")
		f(fromEnv, value, s.env())
		f(fromFlag, value, s.flag())
		f(none, strings.Join(s.slot.write(none), ","), "default")
		if s.fallback == "" {
			f(load(t, file, nil, s.flag()+"="), "", s.flag())
			continue
		}
		f(load(t, file, append(with, s.env()+"="+s.fallback)), s.fallback, s.env())
		f(load(t, file, append(with, s.env()+"="+s.fallback), s.flag()+"="+value), value, s.flag())
	}
}

// What Write writes is the same configuration again.
func TestWriteReadsBack(t *testing.T) {
	joined := maps.Clone(others)
	delete(joined, "trust.jwt.key")
	delete(joined, "limits.write")
	delete(joined, "store")
	shared, own := maps.Clone(joined), maps.Clone(joined)
	for path := range joined {
		switch lookup(path).of {
		case InMemory:
			delete(shared, path)
		case InRedis:
			delete(own, path)
		}
	}
	spread := maps.Clone(shared) // over shards, in place of one Redis
	delete(spread, "store.redis")
	delete(spread, "store.region")
	delete(spread, "store.regions")
	delete(shared, "store.shards")
	delete(shared, "store.was")
	for _, args := range [][]string{nil, flagsOf(shared), flagsOf(spread), flagsOf(own)} {
		c := load(t, "#", nil, args...)
		var text bytes.Buffer
		if err := c.Write(&text); err != nil {
			t.Fatal(err)
		}
		again := load(t, text.String(), nil)
		for i, s := range again.Settings() {
			if was := c.Settings()[i]; s.Value != was.Value {
				t.Errorf("%s: %q became %q in\n%s", s.Path, was.Value, s.Value, text.String())
			}
		}
	}
}

func flagsOf(values map[string]string) []string {
	var args []string
	for path, value := range values {
		args = append(args, lookup(path).flag()+"="+value)
	}
	return args
}
