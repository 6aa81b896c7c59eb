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
	// Name of this process for operators, in XPENDING.
	Name string
	// Max is how many bytes all entries of one rule may take together. Results and Dead are as in
	// [FileOptions].
	Max           int64
	Results, Dead time.Duration
	// Takeover is after how much silence of a gateway others send what it was trying.
	Takeover time.Duration
	// Deadline is by when a live request knows whether its line is busy.
	Deadline time.Duration
	// Log is told when Redis cannot be used; nil means slog.Default.
	Log *slog.Logger
}

// Redis is a Store in Redis that several gateways share. Lines are streams; the gateway that tries the
// first of a line has it pending in the group of the stream. What a gateway does not acknowledge, as
// it is dead, others claim when it was idle for long enough.
//
// All times are of Redis' clock, so that gateways need not agree on theirs.
type Redis struct {
	o        RedisOptions
	store    *redis.Store
	scripts  chain.Scripts
	consumer string

	mu        sync.Mutex
	rules     map[string]*backlog // that have or had entries
	known     bool                // they were read
	order     []*backlog          // the same, in the order in which they have turns
	held      map[heldLine]string // lines whose first this process tries, with the ID of it in the stream
	unwritten []unwritten         // ends that Redis has not taken yet
	away      map[place]absence   // servers, and rules, that cannot be asked about
	unfit     error               // why nothing may be kept; errUnknown before somebody has asked

	polling chan struct{} // whoever looks for a line has put one in
	wake    chan struct{} // a line of this process may be due
	stop    context.CancelFunc
	life    context.Context // until Close
	tending sync.WaitGroup
	closing sync.Once
}

// heldLine is a line of a rule.
type heldLine struct{ rule, name string }

// unwritten is a change that Redis is still to take.
type unwritten struct {
	line heldLine
	make func(context.Context) error
}

const (
	// callTimeout is how long a call of Redis may take: it may have to sync its disk.
	callTimeout = 5 * time.Second
	// pollEvery is how often lines are looked for that other gateways have added to.
	pollEvery = 200 * time.Millisecond
	// rulesEvery is how often rules are looked for that others have added.
	rulesEvery = 2 * time.Second
	// awayFor is how long nobody asks a Redis that has failed, at least.
	awayFor = time.Second
	// forgetAway is after how long a server is forgotten that was away and is asked nothing any more, as it has
	// left the cluster.
	forgetAway = time.Minute
	// maxRecord is how long a record may be: replies of Redis are bounded.
	maxRecord = 768 << 10
	// partSize is how much of a body is read at once.
	partSize = 512 << 10
)

// errUnknown: nobody knows yet how Redis keeps what is written.
var errUnknown = errors.New("Redis has not answered yet how it keeps what is written")

// OpenRedis returns the Store in Redis. It does not wait for Redis, which may be down; [Redis.Fit] tells whether
// it can be used.
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
		return nil, errors.New("deferq: the store runs no scripts") // it does
	}
	r := &Redis{
		o: o, store: store, scripts: of, consumer: o.Name + "-" + rand.Text()[:8],
		rules: make(map[string]*backlog), held: make(map[heldLine]string), away: make(map[place]absence), unfit: errUnknown,
		polling: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	r.life, r.stop = context.WithCancel(context.Background())
	r.tending.Go(r.tend)
	return r, nil
}

// Close implements Store. What was ended is recorded first, if Redis takes it.
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

// run runs a script on the keys of one rule; "" is for keys of none.
func (r *Redis) run(ctx context.Context, rule, what string, s *chain.Script, keys []string, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	all, err := r.scripts.Run(ctx, what, s, keys, args...)
	if err == nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		r.note(rule, err, time.Since(began)) // a caller who goes says nothing about Redis
	}
	return all, err
}

// place is a server with all that it has, or one rule there.
type place struct{ server, rule string }

// placesOf are where a rule is; "" is for keys of none.
func (r *Redis) placesOf(rule string) (server, own place) {
	key := rulesKey(r.scripts)
	if rule != "" {
		key = r.backlogOf(rule).key("turns")
	}
	server = place{server: r.scripts.Home(key)}
	return server, place{server.server, rule}
}

// absence is that a server does not answer: of several shards, one may be away. Nobody asks it
// again before until, so that the rules of others do not wait for it. If it answers and cannot be asked about
// one rule, only that is left alone.
type absence struct {
	err   error
	until time.Time
}

// note remembers whether the server of a rule answers, and logs when that changes. One that took long to
// fail is asked less often.
func (r *Redis) note(rule string, err error, took time.Duration) {
	server, own := r.placesOf(rule)
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
	switch {
	case err != nil && !was:
		r.o.Log.Warn("Redis cannot be asked about deferred requests: none is kept and none is sent until it can", "server", failed.server, "rule", failed.rule, "err", err)
	case err == nil && (serverWas || ownWas):
		r.o.Log.Info("Redis answers about deferred requests again", "server", own.server, "rule", own.rule)
	}
}

// isAway returns why nobody is to ask about a rule now; nil if somebody may.
func (r *Redis) isAway(rule string) error {
	server, own := r.placesOf(rule)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range []place{server, own} {
		if a, ok := r.away[at]; ok && time.Now().Before(a.until) {
			return a.err
		}
	}
	return nil
}

// backlogOf returns the backlog of a rule.
func (r *Redis) backlogOf(rule string) *backlog {
	return &backlog{rule, r.scripts.Prefix() + ":deferred{" + url.PathEscape(rule) + "}"}
}

// register makes a rule known to all gateways, before the first of its entries is added.
func (r *Redis) register(ctx context.Context, rule string) (*backlog, error) {
	r.mu.Lock()
	b := r.rules[rule]
	r.mu.Unlock()
	if b != nil {
		return b, nil
	}
	if err := r.learn(ctx, rule); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rules[rule], nil
}

// rulesKey is the key of the rules that have entries.
func rulesKey(s chain.Scripts) string { return s.Prefix() + ":deferred:rules" }

// learn looks which rules have entries, and adds some.
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
			b := r.backlogOf(rule)
			r.rules[rule], r.order = b, append(r.order, b)
		}
	}
	return nil
}

// allBacklogs is backlogs, of a Redis that was asked for them at least once.
func (r *Redis) allBacklogs(ctx context.Context) ([]*backlog, error) {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if !known {
		if err := r.learn(ctx); err != nil {
			return nil, err
		}
	}
	return r.backlogs(), nil
}

// backlogs returns all that are known, the one whose turn it is first.
func (r *Redis) backlogs() []*backlog {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// passTurn puts a backlog behind the others.
func (r *Redis) passTurn(b *backlog) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.order, b); i >= 0 {
		r.order = append(slices.Delete(r.order, i, i+1), b)
	}
}

// nameOf is the name of a line among those of its rule: keys may be long, and may be secret.
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
