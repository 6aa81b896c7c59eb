package config

import (
	"log/slog"
	"net/netip"
	"net/url"
	"time"

	"tidegate.dev/tidegate/internal/lang/apikey"
)

const defaultRules = "rules.yaml"

const mostConnections = 10_000_000

// table has every setting, in the order of the documentation. Those of one map
// stand together.
var table = []*setting{
	{
		path: "rules", example: "rules.yaml", file: fileOrFolder,
		slot:    one(func(c *Config) *string { return &c.Rules }, path),
		derived: "rules.yaml beside the configuration file, if it is there",
		help:    "rule `FILE`, or a folder of them; changes take effect at once",
		shape:   "write the rules into a file of their own, and name it: `rules: rules.yaml`",
	},
	{
		path: "listen.gateway", example: "127.0.0.1:8080", fallback: "127.0.0.1:8080",
		slot: one(func(c *Config) *Address { return &c.Listen.Gateway }, addressOrOff("8080")),
		help: "`ADDRESS` for clients: 127.0.0.1:8080 for this machine only, :8080 for every machine that can reach it, unix:/run/tidegate.sock, or off",
	},
	{
		path: "listen.check", example: "127.0.0.1:8081", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.Check }, addressOrOff("8081")),
		help: "`ADDRESS` of the HTTP check API, for proxies and services that ask before they act; one that other machines can reach needs check.token_file or check.tls.client_ca",
	},
	{
		path: "listen.resp", example: "127.0.0.1:6380", fallback: Off,
		slot: one(func(c *Config) *Address { return &c.Listen.RESP }, addressOrOff("6380")),
		help: "`ADDRESS` for Redis clients, which ask by commands such as CL.THROTTLE; one that other machines can reach needs resp.users_file or resp.tls.client_ca",
	},
	{
		path: "listen.admin", example: "127.0.0.1:9090", fallback: "127.0.0.1:9090",
		slot: one(func(c *Config) *Address { return &c.Listen.Admin }, address("9090")),
		help: "`ADDRESS` for operators: health, metrics, keys; an address that other machines can reach needs admin.token_file",
	},
	{
		path: "upstreams", example: "http://127.0.0.1:9000", item: "url",
		slot: list(func(c *Config) *[]*url.URL { return &c.Upstreams }, upstream),
		help: "`URLS` of the servers to protect; a request goes to the one with the fewest in flight",
	},
	{
		path: "trust.proxies", example: "10.0.0.0/8",
		slot: list(func(c *Config) *[]netip.Prefix { return &c.Trust.Proxies }, network),
		help: "`NETWORKS` of your own proxies, whose X-Forwarded-For is believed",
	},
	{
		path: "trust.unix", example: "true", fallback: "false",
		slot: yesNo(func(c *Config) *bool { return &c.Trust.Unix }),
		help: "clients on a Unix socket are your own proxies, too",
	},
	{
		path: "trust.jwt.jwks", example: "jwks.json", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.JWKS }, keySet),
		help: "`URL` (https) or file of the JSON Web Key Set that verifies bearer tokens; a URL is fetched again when it is due, and when a token has an unknown key id",
	},
	{
		path: "trust.jwt.refresh", example: "10m", fallback: "10m",
		slot: one(func(c *Config) *time.Duration { return &c.Trust.JWT.Refresh }, lasting(10*time.Second, day)),
		help: "`TIME` after which the keys of a URL are fetched again",
	},
	{
		path: "trust.jwt.copy", example: "/var/lib/tidegate/jwks.json", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Copy }, path),
		help: "`FILE` that keeps the last good keys of a URL, for a start while it does not answer",
	},
	{
		path: "trust.jwt.key", example: "jwt.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Key }, path),
		help: "`FILE` with the public key (PEM) or shared secret that verifies bearer tokens, instead of trust.jwt.jwks",
	},
	{
		path: "trust.jwt.issuer", example: "https://login.example.com",
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Issuer }, text),
		help: "`ISSUER` that a token must have; any if not set",
	},
	{
		path: "trust.jwt.audience", example: "api",
		slot: one(func(c *Config) *string { return &c.Trust.JWT.Audience }, text),
		help: "`AUDIENCE` that a token must have; any if not set",
	},
	{
		path: "trust.api_keys.from", example: "bearer", fallback: apikey.Usual,
		slot: one(func(c *Config) *string { return &c.Trust.APIKeys.From }, keyPlace),
		help: "`PLACE` where a request has its API key: client header NAME, bearer (Authorization: Bearer KEY), basic.user, query NAME, cookie NAME, or header NAME if a trusted proxy sets it",
	},
	{
		path: "trust.api_keys.file", example: "api-keys.csv", file: aFile,
		slot: one(func(c *Config) *string { return &c.Trust.APIKeys.File }, path),
		help: "`FILE` with the hashes, names and attributes of API keys, which tidegate api-keys writes; changes take effect at once",
	},
	{
		path: "store", example: InMemory, fallback: InMemory,
		slot:    one(func(c *Config) *string { return &c.Store.Kind }, storeKind),
		derived: "redis if there is a store.redis, else memory",
		help:    "`STORE` of the counters: memory, one per process; or redis, shared by all",
	},
	{
		path: "store.memory.max", of: InMemory, example: "1GiB", fallback: "256MiB",
		slot: one(func(c *Config) *int64 { return &c.Store.Memory.Max }, size(span[int64]{least: 1 << 20, most: 1 << 40})),
		help: "`SIZE` that all counters together may take; a key takes about 35 bytes",
	},
	{
		path: "store.memory.snapshot", of: InMemory, example: "/var/lib/tidegate/snapshot", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Store.Memory.Snapshot }, path),
		help: "`FILE` that keeps the counters across a restart",
	},
	{
		path: "store.memory.snapshot_every", of: InMemory, example: "10s", fallback: "10s",
		slot: one(func(c *Config) *time.Duration { return &c.Store.Memory.SnapshotEvery }, lastingOrNone(100*time.Millisecond, day)),
		help: "`TIME` between two snapshots: what was counted since the last is lost when the process is killed; 0 to write one at shutdown only",
	},
	{
		path: "store.redis", of: InRedis, example: "redis://127.0.0.1:6379",
		slot:  one(func(c *Config) *string { return &c.Store.Redis.URL }, redisURL),
		help:  "`URL` of Redis: redis:// or rediss:// (TLS), redis-sentinel://, redis-cluster:// or unix://; see docs/redis.md",
		shape: "write the URL, and the other settings beside it: `store: { redis: redis://127.0.0.1:6379, deadline: 25ms }`",
	},
	{
		path: "store.deadline", of: InRedis, example: "25ms", fallback: "25ms",
		slot: one(func(c *Config) *time.Duration { return &c.Store.Redis.Deadline }, lasting(time.Millisecond, 10*time.Second)),
		help: "`TIME` within which a decision is made, whatever Redis does; after that, each rule's on_store_failure decides",
	},
	{
		path: "store.username", of: InRedis, example: "tidegate",
		slot: one(func(c *Config) *string { return &c.Store.Redis.Username }, text),
		help: "`NAME` of the ACL user, unless the URL has one",
	},
	{
		path: "store.password_file", of: InRedis, example: "redis.password", file: aFile,
		slot: one(func(c *Config) *string { return &c.Store.Redis.PasswordFile }, path),
		help: "`FILE` with the password of Redis, unless the URL has one",
	},
	{
		path: "store.instance", of: InRedis, example: "web-1",
		slot:    one(func(c *Config) *string { return &c.Store.Redis.Instance }, instanceName),
		derived: "host:pid",
		help:    "`NAME` of this process in tidegate fleet",
	},
	{
		path: "tls.cert", example: "cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.TLS.Cert }, path),
		help: "`FILE` with the certificate of the gateway and its chain (PEM); read again when it changes",
	},
	{
		path: "tls.key", example: "key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.TLS.Key }, path),
		help: "`FILE` with the private key of tls.cert (PEM)",
	},
	{
		path: "tls.client_ca", example: "clients-ca.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.TLS.ClientCA }, path),
		help: "`FILE` with the certificate authorities that verify client certificates (PEM), for tls.client_cn in rules; read again when it changes",
	},
	{
		path: "tls.client_auth", example: Require, fallback: Request,
		slot: one(func(c *Config) *string { return &c.TLS.ClientAuth }, oneOf(Request, Require)),
		help: "`WHAT` to do with clients that have no certificate: request one and serve them without, or require one",
	},
	{
		path: "limits.header", example: "64KiB", fallback: "64KiB",
		slot: one(func(c *Config) *int64 { return &c.Limits.Header }, size(span[int64]{least: 1 << 10, most: 16 << 20})),
		help: "`SIZE` of a request's header",
	},
	{
		path: "limits.header_lines", example: "128", fallback: "128",
		slot: one(func(c *Config) *int { return &c.Limits.HeaderLines }, count(span[int]{least: 1, most: 10_000})),
		help: "`NUMBER` of lines in a request's header",
	},
	{
		path: "limits.uri", example: "8KiB", fallback: "8KiB",
		slot: one(func(c *Config) *int64 { return &c.Limits.URI }, size(span[int64]{least: 64, most: 16 << 20})),
		help: "`SIZE` of a request's target, path and query",
	},
	{
		path: "limits.body", example: "10MB", fallback: "0",
		slot: one(func(c *Config) *int64 { return &c.Limits.Body }, size(span[int64]{least: 1, most: 1 << 50, orZero: true})),
		help: "`SIZE` of a request's body; 0 for any",
	},
	{
		path: "limits.read_header", example: "10s", fallback: "10s",
		slot:    one(func(c *Config) *time.Duration { return &c.Limits.ReadHeader }, lasting(100*time.Millisecond, time.Hour)),
		derived: "10s, or limits.read if that is shorter",
		help:    "`TIME` until a request's header is read",
	},
	{
		path: "limits.read", example: "1m", fallback: "0",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Read }, lastingOrNone(100*time.Millisecond, 7*day)),
		help: "`TIME` until a whole request is read; 0 for any, as uploads and WebSockets need",
	},
	{
		path: "limits.write", example: "2m", fallback: "0",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Write }, lastingOrNone(100*time.Millisecond, 7*day)),
		help: "`TIME` until an answer is written; 0 for any, as downloads and streams need",
	},
	{
		path: "limits.idle", example: "2m", fallback: "2m",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Idle }, lasting(time.Second, day)),
		help: "`TIME` between two requests of a connection",
	},
	{
		path: "limits.stall", example: "1m", fallback: "1m",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Stall }, lastingOrNone(100*time.Millisecond, day)),
		help: "`TIME` that a client may stall in the middle of a body, its own or the answer's, over HTTP/1 and HTTP/2; 0 for any",
	},
	{
		path: "limits.tunnel", example: "1h", fallback: "1h",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Tunnel }, lastingOrNone(100*time.Millisecond, 7*day)),
		help: "`TIME` that both sides of a WebSocket, or of a request that is answered while its body is still being sent, may be silent; 0 for any",
	},
	{
		path: "limits.upstream", example: "30s", fallback: "1m",
		slot: one(func(c *Config) *time.Duration { return &c.Limits.Upstream }, lastingOrNone(10*time.Millisecond, day)),
		help: "`TIME` until an upstream begins to answer; 0 for any",
	},
	{
		path: "limits.connections", example: "10000", fallback: "0",
		slot:    one(func(c *Config) *int { return &c.Limits.Connections }, count(span[int]{least: 1, most: mostConnections, orZero: true})),
		derived: "what the limit of open files (RLIMIT_NOFILE) has room for, with as many to upstreams: 448 of 1024",
		help:    "`NUMBER` of connections open at once; 0 for any",
	},
	{
		path: "limits.requests", example: "5000", fallback: "0",
		slot: one(func(c *Config) *int { return &c.Limits.Requests }, count(span[int]{least: 1, most: 10_000_000, orZero: true})),
		help: "`NUMBER` of requests in flight at once, those that wait in a queue included; 0 for any",
	},
	{
		path: "health.path", example: "/healthz",
		slot: one(func(c *Config) *string { return &c.Health.Path }, urlPath),
		help: "`PATH` to probe on each upstream; without one, only failing requests show that it is unhealthy",
	},
	{
		path: "health.every", example: "5s", fallback: "5s",
		slot: one(func(c *Config) *time.Duration { return &c.Health.Every }, lasting(100*time.Millisecond, day)),
		help: "`TIME` between two probes",
	},
	{
		path: "health.timeout", example: "2s", fallback: "2s",
		slot:    one(func(c *Config) *time.Duration { return &c.Health.Timeout }, lasting(10*time.Millisecond, time.Hour)),
		derived: "2s, or health.every if that is shorter",
		help:    "`TIME` that an upstream has to answer a probe",
	},
	{
		path: "health.unhealthy_after", example: "3", fallback: "3",
		slot: one(func(c *Config) *int { return &c.Health.UnhealthyAfter }, count(span[int]{least: 1, most: 1000})),
		help: "`NUMBER` of failures in a row after which an upstream gets no requests",
	},
	{
		path: "keep_alive.idle", example: "30s", fallback: "1m30s",
		slot: one(func(c *Config) *time.Duration { return &c.KeepAlive.Idle }, lastingOrNone(100*time.Millisecond, day)),
		help: "`TIME` that an unused connection to an upstream is kept; set it below the upstream's own, or a request may hit a connection that is just being closed. 0 to close each after its answer",
	},
	{
		path: "keep_alive.connections", example: "1024", fallback: "1024",
		slot: one(func(c *Config) *int { return &c.KeepAlive.Connections }, count(span[int]{least: 1, most: 1_000_000})),
		help: "`NUMBER` of unused connections that are kept per upstream",
	},
	{
		path: "paths.encoded_slash", example: Allow, fallback: Refuse,
		slot: one(func(c *Config) *string { return &c.Paths.EncodedSlash }, oneOf(Refuse, Allow)),
		help: "`WHAT` to do with a path that has %2F in it: refuse it with 400, or allow it",
	},
	{
		path: "paths.dot_segments", example: Clean, fallback: Refuse,
		slot: one(func(c *Config) *string { return &c.Paths.DotSegments }, oneOf(Refuse, Clean)),
		help: "`WHAT` to do with a path that has . or .. in it: refuse it with 400, or clean it before rules and upstream see it",
	},
	{
		path: "paths.empty_segments", example: Merge, fallback: Refuse,
		slot: one(func(c *Config) *string { return &c.Paths.Empty }, oneOf(Refuse, Merge)),
		help: "`WHAT` to do with a path that has // in it: refuse it with 400, or merge the slashes before rules and upstream see it",
	},
	{
		path: "paths.case", example: Insensitive, fallback: Sensitive,
		slot: one(func(c *Config) *string { return &c.Paths.Case }, oneOf(Sensitive, Insensitive)),
		help: "`WHETHER` /A and /a are the same path to the upstreams, and so to the rules: sensitive, or insensitive",
	},
	{
		path: "log.access", example: Stdout, fallback: Stdout, file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Log.Access }, output),
		help: "`WHERE` a line for each request goes: stdout, stderr, off, or a file",
	},
	{
		path: "log.format", example: JSON, fallback: JSON,
		slot: one(func(c *Config) *string { return &c.Log.Format }, oneOf(JSON, Text)),
		help: "`FORMAT` of all lines: json or text",
	},
	{
		path: "log.keys", example: Plain, fallback: Hashed,
		slot: one(func(c *Config) *string { return &c.Log.Keys }, oneOf(Hashed, Plain, Off)),
		help: "`HOW` the access log shows who was refused: hashed (addresses are shown as they are), plain, or off",
	},
	{
		path: "log.level", example: "info", fallback: "info",
		slot: one(func(c *Config) *slog.Level { return &c.Log.Level }, named(
			[]string{"debug", "info", "warn", "error"}, []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError})),
		help: "lowest `LEVEL` that the process logs about itself: debug, info, warn or error",
	},
	{
		path: "check.token_file", example: "check.token", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TokenFile }, path),
		help: "`FILE` with the token that the check API requires, of 16 bytes or more; read again when it changes",
	},
	{
		path: "check.deadline", example: "250ms", fallback: "250ms",
		slot: one(func(c *Config) *time.Duration { return &c.Check.Deadline }, lasting(time.Millisecond, time.Minute)),
		help: "`TIME` by which the check API answers every question",
	},
	{
		path: "check.tls.cert", example: "check-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.Cert }, path),
		help: "`FILE` with the certificate of the check API and its chain (PEM); read again when it changes",
	},
	{
		path: "check.tls.key", example: "check-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.Key }, path),
		help: "`FILE` with the private key of check.tls.cert (PEM)",
	},
	{
		path: "check.tls.client_ca", example: "check-callers.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Check.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of the certificates that callers of the check API must have",
	},
	{
		path: "resp.users_file", example: "resp.users", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.UsersFile }, path),
		help: "`FILE` with the users of the RESP listener, a line each: name, password and, if wanted, a prefix for its keys; read again when it changes",
	},
	{
		path: "resp.tls.cert", example: "resp-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.Cert }, path),
		help: "`FILE` with the certificate of the RESP listener and its chain (PEM); read again when it changes",
	},
	{
		path: "resp.tls.key", example: "resp-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.Key }, path),
		help: "`FILE` with the private key of resp.tls.cert (PEM)",
	},
	{
		path: "resp.tls.client_ca", example: "resp-callers.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RESP.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of the certificates that callers of the RESP listener must have",
	},
	{
		path: "usage", example: "/.well-known/ratelimit",
		slot: one(func(c *Config) *string { return &c.Usage }, ownPath),
		help: "`PATH` of the gateway at which callers see where they stand with their limits, free of charge; it does not reach the upstreams",
	},
	{
		path: "admin.token_file", example: "admin.token", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TokenFile }, path),
		help: "`FILE` with the token that the admin listener requires, of 16 bytes or more; without one, only this machine is served",
	},
	{
		path: "admin.tls.cert", example: "admin-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TLS.Cert }, path),
		help: "`FILE` with the certificate of the admin listener and its chain (PEM); read again when it changes",
	},
	{
		path: "admin.tls.key", example: "admin-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.Admin.TLS.Key }, path),
		help: "`FILE` with the private key of admin.tls.cert (PEM)",
	},
	{
		path: "drain", example: "30s", fallback: "30s",
		slot: one(func(c *Config) *time.Duration { return &c.Drain }, lastingOrNone(time.Millisecond, day)),
		help: "`TIME` for requests in flight to end at shutdown; 0 to cut them off",
	},
}
