package config

import (
	"time"
)

const mostConnections = 10_000_000

// tlsTable has the settings of the gateway's certificates.
var tlsTable = []*setting{
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
}

// limitsTable has the settings of what a connection and a request may take at the gateway.
var limitsTable = []*setting{
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
}

// pathsTable has the settings of how paths are read.
var pathsTable = []*setting{
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
}
