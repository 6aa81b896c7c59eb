package config

import (
	"time"
)

// rlsTable has the settings of the rate limit service for Envoy.
var rlsTable = []*setting{
	{
		path: "rls.deadline", example: "15ms", fallback: "15ms",
		slot: one(func(c *Config) *time.Duration { return &c.RLS.Deadline }, lasting(time.Millisecond, time.Minute)),
		help: "`TIME` by which the rate limit service answers, whatever Redis does; less than the timeout of Envoy's filter, which is 20ms unless it is set",
	},
	{
		path: "rls.max_connection_age", example: "1h", fallback: "24h",
		slot: one(func(c *Config) *time.Duration { return &c.RLS.MaxConnectionAge }, lastingOrNone(time.Second, 365*day)),
		help: "`TIME` after which Envoy is told to connect again, so that new instances get their share; 0 for never",
	},
	{
		path: "rls.merge_domains", example: "true", fallback: "false",
		slot: yesNo(func(c *Config) *bool { return &c.RLS.MergeDomains }),
		help: "several rule files may have descriptors of one domain",
	},
	{
		path: "rls.shadow", example: "true", fallback: "false",
		slot: yesNo(func(c *Config) *bool { return &c.RLS.Shadow }),
		help: "the rate limit service only counts: it refuses no call, whatever the rules say",
	},
	{
		path: "rls.headers.limit", example: "RateLimit-Limit",
		slot: one(func(c *Config) *string { return &c.RLS.Headers.Limit }, headerName),
		help: "`NAME` of the response header with the limit that a call is closest to; none if not set",
	},
	{
		path: "rls.headers.remaining", example: "RateLimit-Remaining",
		slot: one(func(c *Config) *string { return &c.RLS.Headers.Remaining }, headerName),
		help: "`NAME` of the response header with what remains of it",
	},
	{
		path: "rls.headers.reset", example: "RateLimit-Reset",
		slot: one(func(c *Config) *string { return &c.RLS.Headers.Reset }, headerName),
		help: "`NAME` of the response header with the seconds until it is reset",
	},
	{
		path: "rls.dynamic_metadata", example: OfRequest, fallback: OfRules,
		slot: one(func(c *Config) *string { return &c.RLS.DynamicMetadata }, oneOf(OfRules, OfRequest, Off)),
		help: "`WHAT` Envoy's next filters are told: rules for the metadata of those that admitted, request for domain and descriptors as well, or off",
	},
	{
		path: "rls.metrics", example: EnvoyProxy, fallback: Native,
		slot: one(func(c *Config) *string { return &c.RLS.Metrics }, oneOf(Native, EnvoyProxy)),
		help: "`NAMES` of metrics: native, or envoyproxy for those of envoyproxy/ratelimit as well, so that dashboards survive",
	},
	{
		path: "rls.compare", example: "ratelimit.example.com:8081",
		slot: one(func(c *Config) *string { return &c.RLS.Compare }, hostPort),
		help: "`ADDRESS` of another rate limit service, which gets every call after the client has its answer; different answers are counted and sampled into the log",
	},
	{
		path: "rls.quota.ttl", example: "2s", fallback: "2s",
		slot: one(func(c *Config) *time.Duration { return &c.RLS.Quota.TTL }, lasting(time.Second, time.Hour)),
		help: "`TIME` for which an assignment of the quota service is valid, in whole seconds, since Envoy reads no fractions; the part of a proxy that is gone is available to the others after this and rls.quota.delivery",
	},
	{
		path: "rls.quota.delivery", example: "500ms", fallback: "500ms",
		slot: one(func(c *Config) *time.Duration { return &c.RLS.Quota.Delivery }, lasting(time.Millisecond, time.Minute)),
		help: "`TIME` that an assignment of the quota service may take until the proxy has it, at most; at most half of rls.quota.ttl",
	},
	{
		path: "rls.tls.cert", example: "rls-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RLS.TLS.Cert }, path),
		help: "`FILE` with the certificate of the rate limit service and its chain (PEM); read again when it changes",
	},
	{
		path: "rls.tls.key", example: "rls-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RLS.TLS.Key }, path),
		help: "`FILE` with the private key of rls.tls.cert (PEM)",
	},
	{
		path: "rls.tls.client_ca", example: "rls-callers.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.RLS.TLS.ClientCA }, path),
		help: "`FILE` with the authorities (PEM) of the certificates that callers of the rate limit service must have",
	},
}

// xdsTable has the settings of a control plane.
var xdsTable = []*setting{
	{
		path: "xds.address", example: "envoy-gateway:18001",
		slot: one(func(c *Config) *string { return &c.XDS.Address }, planeAddress),
		help: "`ADDRESS` of a control plane that sends rules of the rate limit service, as Envoy Gateway does: host:port, or unix:/run/xds.sock",
	},
	{
		path: "xds.node_id", example: "envoy-ratelimit", fallback: "default",
		slot: one(func(c *Config) *string { return &c.XDS.NodeID }, text),
		help: "`NAME` under which the control plane has rules for this process; that of Envoy Gateway is envoy-ratelimit",
	},
	{
		path: "xds.metadata", example: "zone=a",
		slot: list(func(c *Config) *[]string { return &c.XDS.Metadata }, keyValue),
		help: "`KEY=VALUES` that the control plane is told about this process",
	},
	{
		path: "xds.wait", example: "10s", fallback: "10s",
		slot: one(func(c *Config) *time.Duration { return &c.XDS.Wait }, lasting(time.Millisecond, time.Hour)),
		help: "`TIME` that the start waits for the first rules of the control plane",
	},
	{
		path: "xds.start", example: Without, fallback: RefuseStart,
		slot: one(func(c *Config) *string { return &c.XDS.Start }, oneOf(RefuseStart, Without)),
		help: "`WHAT` to do if there are none by then: refuse to start, or start without them until they are there",
	},
	{
		path: "xds.max_message", example: "16MiB", fallback: "4MiB",
		slot: one(func(c *Config) *int64 { return &c.XDS.MaxMessage }, size(span[int64]{least: 1 << 10, most: 64 << 20})),
		help: "`SIZE` of a response of the control plane",
	},
	{
		path: "xds.tls.ca", example: "xds-ca.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.XDS.TLS.CA }, authoritiesOrSystem),
		help: "`FILE` with the authorities of the control plane (PEM), or system for those that the system trusts; without it the connection is in plain text",
	},
	{
		path: "xds.tls.cert", example: "xds-cert.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.XDS.TLS.Cert }, path),
		help: "`FILE` with the certificate that the control plane is shown (PEM); read again for every connection",
	},
	{
		path: "xds.tls.key", example: "xds-key.pem", file: aFile,
		slot: one(func(c *Config) *string { return &c.XDS.TLS.Key }, path),
		help: "`FILE` with the private key of xds.tls.cert (PEM)",
	},
	{
		path: "xds.tls.name", example: "envoy-gateway",
		slot:    one(func(c *Config) *string { return &c.XDS.TLS.Name }, text),
		derived: "the host of xds.address",
		help:    "`NAME` that the certificate of the control plane must have",
	},
}
