package config

import (
	"slices"
	"time"
)

// table has every setting, in the order of the documentation. Those of one map
// stand together.
var table = slices.Concat(
	rulesTable, listenTable, upstreamsTable, trustTable, storeTable,
	tlsTable, limitsTable, healthTable, keepAliveTable, pathsTable,
	logTable, checkTable, respTable, rlsTable, xdsTable,
	usageTable, deferTable, adminTable, telemetryTable, drainTable,
)

var usageTable = []*setting{
	{
		path: "usage", example: "/.well-known/ratelimit",
		slot: one(func(c *Config) *string { return &c.Usage }, ownPath),
		help: "`PATH` of the gateway at which callers see where they stand with their limits, free of charge; it does not reach the upstreams",
	},
}

var drainTable = []*setting{
	{
		path: "drain", example: "30s", fallback: "30s",
		slot: one(func(c *Config) *time.Duration { return &c.Drain }, lastingOrNone(time.Millisecond, day)),
		help: "`TIME` for requests in flight to end at shutdown; 0 to cut them off",
	},
}
