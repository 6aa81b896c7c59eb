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
// Instances count each other by heartbeats, and [Store.Members] lists them. Requests for the same key share a call, keys
// that are ready together share a round trip, and refusals are remembered. The gateway of
// `tidegate serve` uses the same Store.
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
	// Shards are several servers that know nothing of each other, in place of the URL. Every
	// key lives on one of them, which the names of all decide. When one does not answer, only
	// what is counted there is decided in its absence.
	Shards []Shard
	// Was are the shards before their list was changed: until it has been the new one
	// everywhere for a period of the longest limit, keys that moved are decided by their
	// former shard as well, and nobody has a fresh budget. A shard of both lists needs no URL
	// here. A single Redis before shards is a list of one.
	Was []Shard
	// Region is the name of the region that this instance is in, if the fleet is in several, each of
	// which has a Redis of its own: limits that are [tidegate.Eventual] and say OnPartition
	// are shared by all regions. Regions are the others, by the same names everywhere.
	Region  string
	Regions []Region
	// OnRegion is told when a region cannot be told what is counted here, or not all of it, and when
	// it can again.
	// It may be called from several goroutines, and must not call the Store.
	OnRegion func(RegionTrouble)
	// Username and Password of Redis, if they are not in the URL.
	Username, Password string
	// PasswordFile has the password, if it is not in the URL nor in Password. It is read
	// again for every connection, so that the password may be changed meanwhile.
	PasswordFile string
	// Deadline is by when every decision has an answer; 0 means DefaultDeadline. One that
	// is only queued behind others, in a burst, waits on for up to half a second, unless
	// Redis says nothing for as long as the deadline.
	Deadline time.Duration
	// OnStoreFailure is what decides when Redis does not, for limits without Terms; nil
	// means tidegate.FailLocal. Limits of a rule file have their own. A Limiter's or Gate's
	// own mode is not asked: this Store always has an answer.
	OnStoreFailure *tidegate.FailMode
	// Instances returns how many share the limits, this one included, where that is
	// known better than by heartbeats; nil, or a result of 0, means by heartbeats.
	Instances func() int
	// Name is what operators call this instance, at most 64 bytes; "" means host:pid.
	Name string
	// Version is shown beside it; "" means the version of this module, if the build knows it.
	Version string
	// Rules returns the revision of the rules that this instance decides by, so that
	// operators see which instances have which; nil means that there are none. Of a
	// revision, 16 bytes are shown.
	Rules func() string
	// StateFile keeps on this machine what operators have ordered, so that it holds from the
	// start on even while Redis is away: see [Follow]. "" means that Redis alone keeps it. A
	// file that cannot be read is an error of Open.
	StateFile string
	// OnMeasure is told of an order that cannot hold here: see [Follow]. It must not call
	// the Store.
	OnMeasure func(error)
	// Log is told when operators' orders cannot be shared or kept; nil means that nobody is.
	Log *slog.Logger
	// JoinLater: this instance is not counted among the others before [Store.Join].
	// For programs that hand over to a successor.
	JoinLater bool
	// OnState is told when Status changes, or when it becomes known why. It may be
	// called from several goroutines, one at a time, and must not call the Store.
	OnState func(Health)
	// OnUnasked is told when Redis works and cannot be asked about a limit, and when
	// that is over.
	OnUnasked func(Unasked)
	// OnLostLease is told when slots turn out to have been lost while they were held, and
	// when that is over; not of each.
	OnLostLease func(LostLease)
	// OnEviction is told when a server turns out to have a maxmemory-policy by which it
	// evicts counters, and when it has evicted keys, at most every few seconds. It must not
	// call the Store.
	OnEviction func(Eviction)
	// OnClock is told when the clock of this process turns out to differ from that of Redis
	// by more than MaxClockOffset, and when that is over: see [Clock.Off]. It must not call
	// the Store.
	OnClock func(Clock)
	// OnCall is told how long each call of Redis for decisions took.
	OnCall func(took time.Duration)
	// OnTake is told how long one in 64 decisions took, without the time in a queue.
	OnTake func(took time.Duration)

	skew time.Duration // how far the wall clock of this process is ahead, in tests
}

// clock is the wall clock of this process; nil means the system's.
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
	shared   chain.Shared // what is inside
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

// Join has this instance counted among those that share the limits, from now on.
func (s *Store) Join() {
	s.joined.Store(true)
	s.registry.Join()
}

// beat is told how each heartbeat went.
func (s *Store) beat(err error) {
	s.watch.beat(err)
	s.split.Look()
	var some interface{ Servers() map[string]error } // did not answer
	if err == nil || errors.As(err, &some) {
		s.servers.look()
	}
}

// Instances is how many share the limits, as far as is known: at least this one.
func (s *Store) Instances() int {
	n, _ := s.membership()
	return n
}

// membership is Instances, and the rank of this one among them; -1 if that is not known.
func (s *Store) membership() (instances, rank int) {
	instances, rank = s.registry.Membership()
	if s.o.Instances != nil {
		if n := s.o.Instances(); n > 0 {
			instances = n
		}
	}
	return instances, rank
}

// Close leaves the fleet and ends the connections. What was admitted without Redis and is not posted to it
// yet is forgotten. What was counted of [tidegate.Eventual] limits is sent first, if Redis answers within
// a second.
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

// HandOver writes to a file what a successor of this process has to know while Redis is
// away, what is counted locally, and what is to be posted to Redis; and what is counted of [tidegate.Split]
// and [tidegate.Eventual] limits and what operators have ordered, in other files beside it. From then on it is the
// successor's.
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

// Ends of the names of other files: with what is counted of shares and of eventual limits, and with
// what operators have ordered.
const (
	ofShares   = ".shares"
	ofEventual = ".eventual"
	ofBoard    = ".board"
)

// Resume says that nobody has taken over.
func (s *Store) Resume() {
	s.node.Resume()
	s.eventual.Resume()
	s.board.Resume()
}

// TakeOver reads what a predecessor wrote with HandOver. Call it before Join and before the
// first request.
func (s *Store) TakeOver(file string) error {
	instances, err := s.node.TakeOver(file)
	if err == nil {
		s.registry.Assume(instances)
	}
	return errors.Join(err, s.split.TakeOver(file+ofShares), s.eventual.TakeOver(file+ofEventual), s.board.TakeOver(file+ofBoard))
}

// LocalFallback implements [tidegate.LocalFallback]: FailLocal is answered here.
func (s *Store) LocalFallback() {}

// Forget forgets the refusals that are remembered here. Call it when limits were changed.
func (s *Store) Forget() { s.node.Forget() }

// Waiting is how many requests wait in queues.
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

// timed tells how long some decisions took.
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
