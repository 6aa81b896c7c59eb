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
	usageTable, deferTable, slipsTable, adminTable, telemetryTable, drainTable,
)

var usageTable = []*setting{
	{
		path: "usage", example: "/.well-known/ratelimit",
		slot: one(func(c *Config) *string { return &c.Usage }, ownPath),
		help: "`PATH` of the gateway at which callers see where they stand with their limits, free of charge; it does not reach the upstreams",
	},
}

var slipsTable = []*setting{
	{
		path: "slips.key_file", example: "slips.key", file: aFile,
		slot: one(func(c *Config) *string { return &c.Slips.KeyFile }, path),
		help: "`FILE` with the key that seals the slips of refusals, the same for the whole fleet: a line of 16 bytes or more, and further lines with earlier keys, which still open their slips; read again when it changes. Without it, each process has a key of its own, and opens no other slips",
	},
}

var drainTable = []*setting{
	{
		path: "drain", example: "30s", fallback: "30s",
		slot: one(func(c *Config) *time.Duration { return &c.Drain }, lastingOrNone(time.Millisecond, day)),
		help: "`TIME` for requests in flight to end at shutdown; 0 to cut them off",
	},
}
