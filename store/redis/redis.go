// Package redis is the store that a fleet shares: counters in Redis, or in any
// server that speaks its protocol and runs its scripts, decided there by one atomic
// script per request and by Redis' own clock. The clocks of the calling processes
// make no difference.
//
// Start with [New], which takes a URL; [Open] takes a [Config]. One Store is one
// long-lived client that pipelines concurrent calls; create one per process, and
// Close it at the end.
//
// A Store neither retries nor waits: when Redis does not answer within the context, or
// within [Config].Deadline if that has none, Take returns an error, and it is unknown
// whether it was charged; slots are released in the background. The caller decides what
// happens to the request, as with [tidegate.Limiter.OnStoreFailure].
//
// Counters of one subject under one rule are kept under one readable key, such as
// tg:api:{user=42}; see the names in key.go. In a Redis Cluster and on shards
// ([Config].Shards), a request with limits of several subjects is decided subject by subject,
// the widest last; what was charged for a request that is refused in the end is given back.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// Defaults of a Config.
const (
	DefaultPrefix      = "tg"
	DefaultDialTimeout = time.Second
	DefaultDeadline    = time.Second
	DefaultGoneAfter   = 100 * time.Millisecond
)

// Config of a Store. URL, Addrs or Shards say where Redis is; everything else has a default.
// The URL takes precedence over the fields.
type Config struct {
	// URL is one of
	//
	//	redis://user:password@host:6379/0
	//	rediss://…                                    TLS
	//	unix:///run/redis.sock?db=0
	//	redis-sentinel://user:password@a:26379,b:26379/mymaster?db=0
	//	redis-cluster://a:6379,b:6379
	//
	// Several hosts in a redis URL are a cluster. rediss-sentinel and
	// rediss-cluster are those over TLS, valkey and valkeys the same as redis and
	// rediss. Behind ? may stand db, prefix, sentinel_user, sentinel_password, and
	// ca, cert and key, which name PEM files for TLS.
	URL string
	// Shards are several servers, in place of URL and Addrs. Every key lives on one of them,
	// which the names of all decide, in whatever order they are listed.
	Shards []Shard
	// Was are the shards before their list was changed, while that is being rolled out and for
	// a period of the longest limit after it. A key that lived on another shard then is decided
	// there as well, so that nobody has a fresh budget. A shard of both lists needs no URL
	// here; one that was a single Redis is a list of one.
	Was []Shard
	// Addrs are hosts with ports, or the path of a socket: of Redis, of the
	// Sentinels, or of some nodes of the cluster.
	Addrs []string
	// Cluster: Addrs are nodes of a Redis Cluster.
	Cluster bool
	// Master is the name under which the Sentinels at Addrs know Redis.
	Master string
	// Username and Password of an ACL user, or of the default one.
	Username, Password string
	// PasswordFile has the password, unless Password or the URL do. It is read again for
	// every connection, so that a password may be changed while the Store is open.
	PasswordFile string
	// SentinelUsername and SentinelPassword are what the Sentinels ask for.
	SentinelUsername, SentinelPassword string
	// DB is the number of the database; a cluster has only 0.
	DB int
	// TLS is used if not nil, for the Sentinels as well.
	TLS *tls.Config
	// Prefix of every key; "" means DefaultPrefix.
	Prefix string
	// DialTimeout bounds connecting; 0 means DefaultDialTimeout.
	DialTimeout time.Duration
	// Deadline bounds every call whose context has no deadline of its own; 0 means
	// DefaultDeadline, less than that none.
	Deadline time.Duration
	// GoneAfter is how long a shard of Was may owe an answer before requests are decided
	// without it; 0 means DefaultGoneAfter. It has to be longer than a round trip, or those
	// shards are never asked.
	GoneAfter time.Duration

	// pretend replaces Redis' clock, and node this process' own, in tests. Scripts
	// are told the pretended time with each call, and go by Redis' if there is none.
	pretend, node func() time.Time
}

// Store is a tidegate.Store in Redis, also a Renewer, Reserver and Resetter. Its
// methods may be called from any number of goroutines.
type Store struct {
	endpoints     []*endpoint // the shards, followed by former ones; one if there are no shards
	shards        int         // how many shards there are; 0 if Config has none
	was           []*endpoint // the shards before they were changed; none if they were not
	former        *owners     // where keys that have moved lived then; nil if was is empty
	beatsInFlight sync.Map    // a chan struct{} by each server that has not answered a heartbeat yet, closed when it has
	prefix        string
	deadline      time.Duration
	cluster       bool
	clock         clock
	lastTag       atomic.Uint64
	carefulUntil  atomic.Int64  // in ns: batches use the careful template until then
	onlyMulti     bool          // in tests: no script is nested
	topology      topologyCache // of a cluster, or of shards
	across        acrossCounts
	returning     atomic.Int64 // how many returns are being tried again

	compiled      sync.Map     // *tidegate.Limit → *compiledLimit
	compiledCount atomic.Int64 // how many there are
}

var (
	_ tidegate.Store    = (*Store)(nil)
	_ tidegate.Renewer  = (*Store)(nil)
	_ tidegate.Reserver = (*Store)(nil)
	_ tidegate.Resetter = (*Store)(nil)
)

// New is shorthand for Open(Config{URL: url}).
func New(url string) (*Store, error) { return Open(Config{URL: url}) }

// Open checks c and returns a Store. It does not wait for Redis, which may be down
// when a process starts: until then calls return an error, and the first call that can
// connects. To know whether Redis answers, use Ping.
func Open(c Config) (*Store, error) {
	var shards, was []Config
	var err error
	if len(c.Shards)+len(c.Was) > 0 {
		shards, was, err = c.completeShards()
	} else {
		err = c.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if c.node == nil {
		c.node = c.pretend
	}
	s := &Store{
		prefix:   c.Prefix,
		deadline: c.Deadline,
		cluster:  c.Cluster,
		clock:    clock{pretend: c.pretend, node: c.node},
	}
	if shards != nil {
		s.openShards(&c, shards, was)
	} else {
		s.endpoints = []*endpoint{newEndpoint("", &c)}
	}
	s.lastTag.Store(rand.Uint64N(tags))
	return s, nil
}

// withDeadline returns ctx with the deadline of the Store, if ctx has none of its own.
func (s *Store) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok || s.deadline < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.deadline)
}

// Ping checks that Redis answers: in a cluster, that one node does; of shards, that every one does.
func (s *Store) Ping(ctx context.Context) error {
	ctx, end := s.withDeadline(ctx)
	defer end()
	var all error
	for _, e := range s.endpoints[:max(s.shards, 1)] {
		client, err := e.client.get(ctx)
		if err == nil {
			err = client.Do(ctx, client.B().Exists().Key(s.prefix+":").Build()).Error()
		}
		all = errors.Join(all, e.failed(err))
	}
	return s.failure("ping", all)
}

// Close ends the connections. Calls under way end with an error.
func (s *Store) Close() error {
	for _, e := range s.endpoints {
		e.client.close()
	}
	return nil
}

// complete fills in what the URL says and the defaults, and checks the result.
func (c *Config) complete() error {
	if c.URL != "" {
		if err := c.readURL(); err != nil {
			return err
		}
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.DialTimeout <= 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.Deadline == 0 {
		c.Deadline = DefaultDeadline
	}
	if c.GoneAfter <= 0 {
		c.GoneAfter = DefaultGoneAfter
	}
	if c.Password != "" {
		c.PasswordFile = ""
	}
	if c.PasswordFile != "" {
		var err error
		if c.Password, err = readPassword(c.PasswordFile); err != nil {
			return err
		}
	}
	t := c.target()
	return t.Check()
}
