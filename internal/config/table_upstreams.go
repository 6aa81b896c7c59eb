package config

import (
	"net/url"
	"time"
)

// upstreamsTable has the settings of the servers to protect.
var upstreamsTable = []*setting{
	{
		path: "upstreams", example: "http://127.0.0.1:9000", item: "url",
		slot: list(func(c *Config) *[]*url.URL { return &c.Upstreams }, upstream),
		help: "`URLS` of the servers to protect; a request goes to the one with the fewest in flight",
	},
}

// healthTable has the settings of health probes of upstreams.
var healthTable = []*setting{
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
}

// keepAliveTable has the settings of connections to upstreams.
var keepAliveTable = []*setting{
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
}
