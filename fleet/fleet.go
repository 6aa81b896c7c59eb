// Package fleet is the store for programs that run as several instances and share their
// limits through Redis. Use it with a [tidegate.Limiter], a [tidegate.Gate] or package
// httplimit:
//
//	store, err := fleet.Open("redis://localhost:6379", fleet.Options{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer store.Close()
//	lim := tidegate.New(store, tidegate.PerMinute(100))
//
// Every decision is made within a deadline, whatever Redis does. When Redis is away, each
// instance goes on counting with its share of the limit, and charges Redis afterwards.
// Instances count each other by heartbeats, and [Store.Members] lists them. Requests for the
// same key share a call, calls for several keys share a round trip, and refusals are
// remembered. The gateway of `tidegate serve` uses the same Store.
//
// For Redis alone, one call per decision and an error when it does not answer, use package
// store/redis.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/chain/eventual"
	"tidegate.dev/tidegate/internal/chain/lease"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/registry"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/store/redis"
)

// DefaultDeadline is how long a decision takes at most, unless Options say otherwise.
const DefaultDeadline = node.DefaultDeadline

// Shard is one of several servers that counters are spread over.
type Shard = redis.Shard

// Options of [Open]. Every field has a default.
type Options struct {
	// Shards are several independent servers, in place of the URL. Every key lives on one of
	// them, which is chosen by the names of all. When one does not answer, OnStoreFailure
	// decides only about what is counted there.
	Shards []Shard
	// Was are the shards before their list was changed: keys that moved are then decided by
	// their former shard as well, so that nobody gets a fresh budget. Keep it until all
	// instances have had the new list for a period of the longest limit. A shard of both
	// lists needs no URL here. A single Redis before shards is a list of one.
	Was []Shard
	// Region is the name of the region of this instance, if the fleet is in several regions, each
	// with a Redis of its own: all regions share the limits that are [tidegate.Eventual] and set
	// OnPartition. Regions are the other regions; names must be the same everywhere.
	Region  string
	Regions []Region
	// OnRegion is called when counts, or some of them, cannot be sent to a region, and when they
	// can again. It may be called from several goroutines, and must not call the Store.
	OnRegion func(RegionTrouble)
	// Username and Password of Redis, if they are not in the URL.
	Username, Password string
	// PasswordFile has the password, if neither the URL nor Password has it. It is read
	// again for every connection, so that the password can be changed.
	PasswordFile string
	// Deadline bounds how long a decision takes; 0 means DefaultDeadline. In a burst, a
	// decision that is only queued behind others may wait up to half a second more, unless
	// Redis is silent for as long as the deadline. For sooner decisions set this, not a deadline
	// of the context: a caller whose context has ended has left, and is refused.
	Deadline time.Duration
	// OnStoreFailure decides when Redis does not, for limits whose Terms name no mode;
	// tidegate.FailDefault, the zero value, means tidegate.FailLocal. Limits of a rule file have their
	// own. The mode of a Limiter or Gate is never used, because this Store always has an answer.
	OnStoreFailure tidegate.FailMode
	// Instances returns how many instances share the limits, this one included, if the program
	// knows that better than heartbeats tell; nil, or a result of 0, means by heartbeats.
	Instances func() int
	// Name is what operators call this instance, at most 64 bytes; "" means host:pid.
	Name string
	// Version is shown beside Name; "" means the version of this module, if the build knows it.
	Version string
	// Rules returns the revision of the rules that this instance decides by, for operators to
	// see; nil means that there are none. The first 16 bytes are shown.
	Rules func() string
	// StateFile keeps on this machine what operators have ordered (see [Follow]), so that it
	// is in force from the start even while Redis is away. "" means that only Redis keeps it.
	// Open fails if the file cannot be read.
	StateFile string
	// OnMeasure is called with the reason if an order cannot be put in force here; see
	// [Follow]. It must not call the Store.
	OnMeasure func(error)
	// Log gets a line when operators' orders cannot be shared or kept; nil means no log.
	Log *slog.Logger
	// JoinLater: this instance is not counted among the others until [Store.Join] is called.
	// It is for programs that hand over to a successor.
	JoinLater bool
	// OnState is called when Status changes, or the reason becomes known. It may be
	// called from several goroutines, one at a time, and must not call the Store.
	OnState func(Health)
	// OnUnasked is called when Redis works but cannot be asked about a limit, and when
	// that is over.
	OnUnasked func(Unasked)
	// OnLostLease is called when slots turn out to have been lost while they were held, and
	// when that is over; not for each slot.
	OnLostLease func(LostLease)
	// OnEviction is called when a server turns out to have a maxmemory-policy by which it
	// may evict counters, and when it has evicted keys, at most every few seconds. It must
	// not call the Store.
	OnEviction func(Eviction)
	// OnClock is called when the clock of this process turns out to differ from that of Redis
	// by more than MaxClockOffset, and when that is over; see [Clock.Off]. It must not call
	// the Store.
	OnClock func(Clock)
	// OnCall is called with how long each call of Redis for decisions took.
	OnCall func(took time.Duration)
	// OnTake is called with how long one in 64 decisions took, without the time in a queue.
	OnTake func(took time.Duration)

	skew time.Duration // how far the wall clock of this process is ahead, in tests
}

// clock returns the wall clock of this process; nil means the system's.
func (o *Options) clock() func() time.Time {
	if o.skew == 0 {
		return nil
	}
	skew := o.skew
	return func() time.Time { return time.Now().Add(skew) }
}

// Store is a [tidegate.Store] whose counters a fleet shares, also a Renewer, Reserver and
// Resetter. Use [Open]. Its methods may be called from any number of goroutines.
type Store struct {
	redis    *redis.Store
	shared   chain.Shared // redis, with the methods for layers
	node     *node.Node
	lease    *lease.Store
	eventual *eventual.Store
	split    *split.Store
	queue    *queue.Store
	registry *registry.Registry
	board    *board.Board
	regions  regions
	o        Options
	watch    healthWatch
	servers  servers
	clock    clockWatch

	name, version string
	opened        time.Time
	joined        atomic.Bool
}

var (
	_ tidegate.Store         = (*Store)(nil)
	_ tidegate.Renewer       = (*Store)(nil)
	_ tidegate.Reserver      = (*Store)(nil)
	_ tidegate.Resetter      = (*Store)(nil)
	_ tidegate.LocalFallback = (*Store)(nil)
)

// Open returns the store of a fleet that shares the Redis at url, which is one of those
// that [redis.Config] knows: a single server, Sentinel or Cluster. With [Options].Shards, url
// is "". It does not wait for Redis, which may be down when a program starts. Close the Store
// at the end.
func Open(url string, o Options) (*Store, error) {
	inner, err := redis.Open(redis.Config{
		URL: url, Shards: o.Shards, Was: o.Was, Username: o.Username, Password: o.Password, PasswordFile: o.PasswordFile,
		GoneAfter: max(redis.DefaultGoneAfter, o.Deadline), // a shard may be as far away as the deadline allows
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		redis: inner, o: o, clock: clockWatch{skew: o.skew, tell: o.OnClock}, opened: time.Now(),
		name: cmp.Or(o.Name, defaultName()), version: cmp.Or(o.Version, defaultVersion()),
	}
	s.shared, _ = chain.AsShared(inner) // every store of package redis is one
	s.watch.tell = o.OnState
	s.servers.info, s.servers.tell = inner.Info, o.OnEviction
	s.watch.ask = s.health
	s.node = node.New(s.shared, node.Options{
		Name: "Redis", Deadline: o.Deadline, Default: o.OnStoreFailure, Instances: s.Instances, Skew: o.skew,
		OnState: s.watch.turned, OnUnasked: s.unasked, OnLostLease: s.lostLease, OnCall: o.OnCall,
	})
	s.lease = lease.New(s.node, s.node, lease.Options{Instances: s.Instances})
	s.registry = registry.New(s.shared, registry.Options{OnBeat: s.beat, About: s.about, OnClock: s.clock.compared})
	if err := s.regions.open(url, s.shared, &o); err != nil {
		_ = s.node.Close()
		_ = inner.Close()
		return nil, err
	}
	s.eventual = eventual.New(s.lease, eventual.Options{
		Tallies: s.shared.Tallies(), Region: s.regions.own(&o), Instances: s.Instances, Deadline: o.Deadline, Now: o.clock(),
	})
	s.split = split.New(s.eventual, split.Options{Members: s.membership, Now: o.clock()})
	var layer chain.Backend = s.split
	if o.OnTake != nil {
		layer = timed{layer, o.OnTake}
	}
	s.queue = queue.New(layer)
	if err := s.openBoard(); err != nil {
		_ = s.Close()
		return nil, err
	}
	if !o.JoinLater {
		s.Join()
	}
	return s, nil
}

// Join makes the other instances count this one, from now on.
func (s *Store) Join() {
	s.joined.Store(true)
	s.registry.Join()
}

// beat is called with the result of each heartbeat.
func (s *Store) beat(err error) {
	s.watch.beat(err)
	s.split.Look()
	var some interface{ Servers() map[string]error } // did not answer
	if err == nil || errors.As(err, &some) {
		s.servers.look()
	}
}

// Instances returns how many instances share the limits, as far as is known: at least this one.
func (s *Store) Instances() int {
	n, _ := s.membership()
	return n
}

// membership returns Instances and the rank of this one among them; -1 if that is not known.
func (s *Store) membership() (instances, rank int) {
	instances, rank = s.registry.Membership()
	if s.o.Instances != nil {
		if n := s.o.Instances(); n > 0 {
			instances = n
		}
	}
	return instances, rank
}

// Close leaves the fleet and ends the connections. It first sends what was counted of
// [tidegate.Eventual] limits, if Redis answers within a second. What was admitted without Redis, and
// is not charged to it yet, is forgotten.
func (s *Store) Close() error {
	s.joined.Store(false)
	if s.board != nil {
		s.board.Close()
	}
	s.registry.Close()
	s.eventual.Close()
	s.regions.close()
	s.lease.Close()
	_ = s.node.Close()
	return s.redis.Close()
}

// HandOver writes to a file what a successor of this process needs to decide while Redis is away:
// what is counted locally, and what is still to be charged to Redis. Files beside it get what is
// counted of [tidegate.Split] and [tidegate.Eventual] limits, and what operators have ordered. From
// then on all this is the successor's. After an error, call Resume to go on.
func (s *Store) HandOver(file string) error {
	if err := s.split.HandOver(file + ofShares); err != nil {
		return err
	}
	if err := s.eventual.HandOver(file + ofEventual); err != nil {
		return err
	}
	if err := s.board.HandOver(file + ofBoard); err != nil {
		return err
	}
	return s.node.HandOver(file)
}

// Suffixes of the files beside that of HandOver: for shares, for eventual limits, and for what
// operators have ordered.
const (
	ofShares   = ".shares"
	ofEventual = ".eventual"
	ofBoard    = ".board"
)

// Resume undoes HandOver: no successor has taken over.
func (s *Store) Resume() {
	s.node.Resume()
	s.eventual.Resume()
	s.board.Resume()
}

// TakeOver reads the files that a predecessor wrote with HandOver. Call it before Join and before
// the first request.
func (s *Store) TakeOver(file string) error {
	instances, err := s.node.TakeOver(file)
	if err == nil {
		s.registry.Assume(instances)
	}
	return errors.Join(err, s.split.TakeOver(file+ofShares), s.eventual.TakeOver(file+ofEventual), s.board.TakeOver(file+ofBoard))
}

// LocalFallback implements [tidegate.LocalFallback]: this Store handles FailLocal.
func (s *Store) LocalFallback() {}

// Forget forgets the refusals that are remembered here. Call it when limits were changed.
func (s *Store) Forget() { s.node.Forget() }

// Waiting returns how many requests wait in queues.
func (s *Store) Waiting() int64 { return s.queue.Waiting() }

// Take implements [tidegate.Store]. A check with a MaxWait, or with a queue in its terms,
// returns when its turn has come.
func (s *Store) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	return s.queue.Take(ctx, checks, n)
}

// Adjust implements [tidegate.Store].
func (s *Store) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return s.queue.Adjust(ctx, r, checks)
}

// Renew implements [tidegate.Renewer].
func (s *Store) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	return s.queue.Renew(ctx, r, checks)
}

// Reserve implements [tidegate.Reserver]. What is reserved while Redis does not answer is
// counted locally, and can be settled at this Store alone.
func (s *Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	return s.queue.Reserve(ctx, checks, ttl)
}

// Settle implements [tidegate.Reserver].
func (s *Store) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	return s.queue.Settle(ctx, r, actual)
}

// Reset implements [tidegate.Resetter].
func (s *Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	return s.queue.Reset(ctx, checks)
}

// timed measures how long some decisions take.
type timed struct {
	chain.Backend
	tell func(time.Duration)
}

func (t timed) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if rand.Uint32()%64 != 0 {
		return t.Backend.Take(ctx, checks, n)
	}
	start := time.Now()
	defer func() { t.tell(time.Since(start)) }()
	return t.Backend.Take(ctx, checks, n)
}
