package config

import "time"

// Defer is about requests that rules keep for later.
type Defer struct {
	File        string        // that keeps them; default: none, they are kept in Redis if the store is InRedis
	Max         int64         // bytes that they may take together; default: 256 MiB
	Results     time.Duration // how long the answers are kept; default: 1h
	Dead        time.Duration // how long dead letters are kept; default: 168h
	Timeout     time.Duration // of an attempt; default: 30s
	Takeover    time.Duration // after which others send what a silent gateway was trying; default: 10s
	Path        string        // below which callers see how their requests are; default: /.well-known/deferred
	Strip       []string      // headers that are not kept; default: none
	Credentials []string      // NAME=FILE, headers that are set at each attempt; default: none
}

// deferTable has the settings of requests that are kept for later.
var deferTable = []*setting{
	{
		path: "defer.file", example: "/var/lib/tidegate/deferred", file: itsFolder,
		slot: one(func(c *Config) *string { return &c.Defer.File }, path),
		help: "`FILE` that keeps the requests which rules defer; if not set, Redis keeps them, and without Redis nothing is deferred",
	},
	{
		path: "defer.max", example: "1GiB", fallback: "256MiB",
		slot: one(func(c *Config) *int64 { return &c.Defer.Max }, size(span[int64]{least: 1 << 20, most: 1 << 40})),
		help: "`SIZE` that all deferred requests and their results together may take; in Redis, those of each rule",
	},
	{
		path: "defer.results", example: "1h", fallback: "1h",
		slot: one(func(c *Config) *time.Duration { return &c.Defer.Results }, lasting(time.Second, 30*day)),
		help: "`TIME` for which the answers to deferred requests are kept",
	},
	{
		path: "defer.dead", example: "168h", fallback: "168h",
		slot: one(func(c *Config) *time.Duration { return &c.Defer.Dead }, lasting(time.Second, 365*day)),
		help: "`TIME` for which deferred requests that could not be sent are kept, for tidegate deferred retry",
	},
	{
		path: "defer.timeout", example: "30s", fallback: "30s",
		slot: one(func(c *Config) *time.Duration { return &c.Defer.Timeout }, lasting(100*time.Millisecond, time.Hour)),
		help: "`TIME` that an attempt to send a deferred request may take, with its answer",
	},
	{
		path: "defer.takeover", example: "10s", fallback: "10s",
		slot: one(func(c *Config) *time.Duration { return &c.Defer.Takeover }, lasting(time.Second, time.Hour)),
		help: "`TIME` of silence after which other gateways on the same Redis send the deferred requests that a gateway was trying",
	},
	{
		path: "defer.path", example: "/.well-known/deferred", fallback: "/.well-known/deferred",
		slot: one(func(c *Config) *string { return &c.Defer.Path }, ownPath),
		help: "`PATH` of the gateway below which callers see what became of their deferred requests",
	},
	{
		path: "defer.strip", example: "Cookie",
		slot: list(func(c *Config) *[]string { return &c.Defer.Strip }, headerName),
		help: "`HEADERS` that are not kept with a deferred request, such as credentials",
	},
	{
		path: "defer.credentials", example: "Authorization=replay.token", pairs: true,
		slot: list(func(c *Config) *[]string { return &c.Defer.Credentials }, headerFile),
		help: "`HEADER=FILES` of headers that deferred requests are sent with instead of their own; a file is read again when it changes",
	},
}
