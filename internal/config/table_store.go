package config

import (
	"time"
)

// storeTable has the settings of the counters.
var storeTable = []*setting{
	{
		path: "store", example: InMemory, fallback: InMemory,
		slot:    one(func(c *Config) *string { return &c.Store.Kind }, storeKind),
		derived: "redis if there is a store.redis or there are store.shards, else memory",
		help:    "`STORE` of the counters: memory, one per process; or redis, shared by all",
	},
	{
		path: "store.memory.max", of: InMemory, example: "1GiB", fallback: "256MiB",
		slot: one(func(c *Config) *int64 { return &c.Store.Memory.Max }, size(span[int64]{least: 1 << 20, most: 1 << 40})),
		help: "`SIZE` that all counters together may take; a key takes about 35 bytes",
	},
	{
		path: "store.memory.snapshot", of: InMemory, example: "/var/lib/tidegate/snapshot", file: itsFolder,
		beside: []string{".rules", ".history", ".board", ".bad", ".new"},
		slot:   one(func(c *Config) *string { return &c.Store.Memory.Snapshot }, path),
		help:   "`FILE` that keeps the counters across a restart",
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
		path: "store.shards", of: InRedis, example: "a=redis://10.0.0.1:6379", entry: []string{"name", "url"},
		slot:  list(func(c *Config) *[]Shard { return &c.Store.Redis.Shards }, shard),
		help:  "`NAMES` and URLs of several Redis servers that counters are spread over, in place of store.redis: a=redis://10.0.0.1,b=redis://10.0.0.2; each a single server or Sentinels; see docs/redis.md",
		shape: shardShape,
	},
	{
		path: "store.was", of: InRedis, example: "a", entry: []string{"name", "url"},
		slot:  list(func(c *Config) *[]Shard { return &c.Store.Redis.Was }, formerShard),
		help:  "`NAMES` of the shards before their list was changed, with URLs for those that were removed: keys that moved are decided there as well; remove this when all instances have had the new list for a period of the longest limit",
		shape: "write the former shards: `was: [ { name: a }, { name: b, url: redis://10.0.0.2:6379 } ]`",
	},
	{
		path: "store.region", of: InRedis, example: "eu",
		slot: one(func(c *Config) *string { return &c.Store.Redis.Region }, regionName),
		help: "`NAME` of the region of this Redis, if there are several with a Redis each: rules with consistency: eventual and on_partition are shared by all; see docs/consistency.md",
	},
	{
		path: "store.regions", of: InRedis, example: "us=redis://10.1.0.1:6379", entry: []string{"name", "url"},
		slot:  list(func(c *Config) *[]Shard { return &c.Store.Redis.Regions }, otherRegion),
		help:  "`NAMES` of the other regions, with the URLs of their Redis: us=redis://10.1.0.1; without a URL, tidegate region-sync has to tell them what is counted here",
		shape: regionShape,
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
}
