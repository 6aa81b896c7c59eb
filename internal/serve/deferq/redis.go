package deferq

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/redis"
)

// RedisOptions configure a [Redis].
type RedisOptions struct {
	// Server is where Redis is.
	Server redis.Config
	// Name is the name of this process for operators, in XPENDING.
	Name string
	// Max is how many bytes all entries of one rule may take together. Results and Dead are as in
	// [FileOptions].
	Max           int64
	Results, Dead time.Duration
	// Takeover is after how much silence of a gateway others take over its attempts.
	Takeover time.Duration
	// Deadline is how long a live request may wait to learn whether its line is busy.
	Deadline time.Duration
	// Log is told when Redis cannot be used; nil means slog.Default.
	Log *slog.Logger
}

// Redis is a Store in Redis that several gateways share. Lines are streams. The gateway that tries
// the first entry of a line has it pending in the consumer group of the stream. If a gateway dies
// without acknowledging an entry, others claim it once it was idle for long enough.
//
// All times are by the clock of Redis, so the clocks of gateways need not agree.
type Redis struct {
	o        RedisOptions
	store    *redis.Store
	scripts  chain.Scripts
	consumer string

	mu        sync.Mutex
	rules     map[string]*keyspace // of rules that have or had entries
	known     bool                 // whether rules were read
	order     []*keyspace          // the values of rules, by turn
	held      map[heldLine]string  // lines whose first entry this process tries, with its stream ID
	unwritten []unwritten          // ends that Redis has not accepted yet
	away      map[place]absence    // servers, rules and streams that cannot be asked
	unfit     error                // why nothing may be kept; errUnknown before the first check

	polling chan struct{} // has an element while a goroutine looks for a line
	wake    chan struct{} // a line of this process may be due
	stop    context.CancelFunc
	life    context.Context // until Close
	tending sync.WaitGroup
	closing sync.Once
}

// heldLine is a line of a rule.
type heldLine struct{ rule, name string }

// unwritten is a change that Redis has not accepted yet.
type unwritten struct {
	line heldLine
	make func(context.Context) error
}

const (
	// callTimeout is how long a call to Redis may take, including a sync of its disk.
	callTimeout = 5 * time.Second
	// pollEvery is how often to look for lines that other gateways have added to.
	pollEvery = 200 * time.Millisecond
	// rulesEvery is how often to look for rules that other gateways have added.
	rulesEvery = 2 * time.Second
	// awayFor is the minimum time before a failed Redis is asked again.
	awayFor = time.Second
	// forgetAway is after how long a failed server that is no longer asked is forgotten: it has
	// left the cluster.
	forgetAway = time.Minute
	// maxRecord is how long a record may be, since replies of Redis are limited.
	maxRecord = 768 << 10
	// partSize is how much of a body is read at once.
	partSize = 512 << 10
)

// errUnknown: the durability of Redis has not been checked yet.
var errUnknown = errors.New("Redis has not said yet how it persists what is written")

// OpenRedis returns the Store in Redis. It does not wait for Redis; [Redis.Fit] tells whether it
// can be used.
func OpenRedis(o RedisOptions) (*Redis, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	store, err := redis.Open(o.Server)
	if err != nil {
		return nil, err
	}
	shared, _ := chain.AsShared(store) // every store of package redis is one
	of, ok := shared.(chain.Scripts)
	if !ok {
		return nil, errors.New("deferq: the store runs no scripts") // cannot happen
	}
	r := &Redis{
		o: o, store: store, scripts: of, consumer: o.Name + "-" + rand.Text()[:8],
		rules: make(map[string]*keyspace), held: make(map[heldLine]string), away: make(map[place]absence), unfit: errUnknown,
		polling: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	r.life, r.stop = context.WithCancel(context.Background())
	r.begin()
	return r, nil
}

// begin begins the regular work. Claims are renewed beside the rest, which may wait for servers that
// hang.
func (r *Redis) begin() {
	r.tending.Go(r.keepClaims)
	r.tending.Go(r.tend)
}

// Close implements Store. Unrecorded ends are written first, if Redis works.
func (r *Redis) Close() (err error) {
	r.closing.Do(func() {
		r.stop()
		r.tending.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		r.writeEnds(ctx, true)
		err = r.store.Close()
	})
	return err
}

// run runs a script on the keys of one rule; "" means the key that names all rules.
func (r *Redis) run(ctx context.Context, rule, what string, s *chain.Script, keys []string, args ...string) ([]string, error) {
	return r.runAbout(ctx, r.aboutRule(rule), what, s, keys, args...)
}

// runAbout runs a script on keys that are on one server.
func (r *Redis) runAbout(ctx context.Context, a about, what string, s *chain.Script, keys []string, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	all, err := r.scripts.Run(ctx, what, s, keys, args...)
	if err == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		r.note(a, err, time.Since(began)) // a caller's cancellation says nothing about Redis
	}
	return all, err
}

// about is what Redis is asked about: a rule, a stream of the user, or which rules there are.
type about struct {
	kind, name string // rule, stream, or rules without a name
	key        string // one of its keys, all of which are on one server
}

// aboutRule returns what is asked about a rule; "" means which rules there are.
func (r *Redis) aboutRule(rule string) about {
	if rule == "" {
		return about{kind: "rules", key: rulesKey(r.scripts)}
	}
	return about{"rule", rule, r.keyspaceOf(rule).key("turns")}
}

// aboutStream returns what is asked about a stream of the user.
func aboutStream(stream string) about { return about{"stream", stream, stream} }

// place is a server as a whole, or what it is asked about.
type place struct {
	server string
	about
}

// placesOf returns where a is asked about.
func (r *Redis) placesOf(a about) (server, own place) {
	home := r.scripts.Home(a.key)
	return place{server: home}, place{home, a}
}

// absence means that a server does not answer; other shards may. It is not asked again before
// until, so that rules on other servers do not wait for it. If a server answers but fails for one
// rule or stream, only that is left alone.
type absence struct {
	err   error
	until time.Time
}

// cannotAsk says what it means that Redis cannot be asked, by the kind of the place.
var cannotAsk = map[string]string{
	"":       "Redis cannot be asked about deferred requests: none is kept there and none is sent until it can",
	"rules":  "Redis cannot be asked which rules have deferred requests: those that this instance does not know yet keep none and send none until it can",
	"rule":   "Redis cannot be asked about the deferred requests of a rule: none of it is kept and none is sent until it can; others are",
	"stream": "Redis cannot append to a stream: requests that are deferred to it are refused until it can",
}

// note records whether the server of a answers, and logs changes. The longer a failure took, the
// less often the server is asked.
func (r *Redis) note(a about, err error, took time.Duration) {
	server, own := r.placesOf(a)
	failed := server
	if errors.Is(err, tidegate.ErrCannotAsk) {
		failed = own
	}
	now := time.Now()
	r.mu.Lock()
	_, serverWas := r.away[server]
	_, ownWas := r.away[own]
	_, was := r.away[failed]
	if err == nil {
		delete(r.away, server)
		delete(r.away, own)
	} else {
		r.away[failed] = absence{err, now.Add(max(awayFor, 2*took))}
	}
	for at, a := range r.away {
		if now.Sub(a.until) > forgetAway {
			delete(r.away, at)
		}
	}
	r.mu.Unlock()
	if err != nil && !was {
		r.o.Log.Warn(cannotAsk[failed.kind], append(failed.words(), "err", err)...)
	}
	if err == nil && serverWas {
		r.o.Log.Info("Redis answers about deferred requests again", server.words()...)
	}
	if err == nil && ownWas {
		r.o.Log.Info("Redis answers about deferred requests again", own.words()...)
	}
}

// words returns a place for the log.
func (p place) words() []any {
	words := []any{"server", p.server}
	if p.name != "" {
		words = append(words, p.kind, p.name)
	}
	return words
}

// isAway returns why a rule must not be asked about now; nil if it may. "" means which rules there
// are.
func (r *Redis) isAway(rule string) error { return r.isAwayAbout(r.aboutRule(rule)) }

func (r *Redis) isAwayAbout(a about) error {
	server, own := r.placesOf(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range []place{server, own} {
		if a, ok := r.away[at]; ok && time.Now().Before(a.until) {
			return a.err
		}
	}
	return nil
}

// keyspaceOf returns the keyspace of a rule.
func (r *Redis) keyspaceOf(rule string) *keyspace {
	return &keyspace{rule, r.scripts.Prefix() + ":deferred{" + url.PathEscape(rule) + "}"}
}

// register makes a rule known to all gateways, before the first of its entries is added.
func (r *Redis) register(ctx context.Context, rule string) (*keyspace, error) {
	r.mu.Lock()
	ks := r.rules[rule]
	r.mu.Unlock()
	if ks != nil {
		return ks, nil
	}
	if err := r.learn(ctx, rule); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rules[rule], nil
}

// rulesKey returns the key of the rules that have or had entries.
func rulesKey(s chain.Scripts) string { return s.Prefix() + ":deferred:rules" }

// learn adds rules to those that all gateways know, and reads which rules these are.
func (r *Redis) learn(ctx context.Context, add ...string) error {
	all, err := r.run(ctx, "", "read the rules that defer", scripts.rules, []string{rulesKey(r.scripts)}, add...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = true
	for _, rule := range all {
		if r.rules[rule] == nil {
			ks := r.keyspaceOf(rule)
			r.rules[rule], r.order = ks, append(r.order, ks)
		}
	}
	return nil
}

// allKeyspaces returns the keyspaces, after it has read the rules from Redis if nobody had.
func (r *Redis) allKeyspaces(ctx context.Context) ([]*keyspace, error) {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if !known {
		if err := r.learn(ctx); err != nil {
			return nil, err
		}
	}
	return r.keyspaces(), nil
}

// keyspaces returns all known keyspaces, the next in turn first.
func (r *Redis) keyspaces() []*keyspace {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// passTurn moves a rule behind the others.
func (r *Redis) passTurn(ks *keyspace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.order, ks); i >= 0 {
		r.order = append(slices.Delete(r.order, i, i+1), ks)
	}
}

// nameOf returns the name of a line within its rule, a hash: keys may be long, and may be secret.
func nameOf(l Line) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", l.Scope, l.Key))
	return hex.EncodeToString(sum[:16])
}

func (r *Redis) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
