package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/chain"
)

// What several regions tell each other is on a single server, or on the one that Sentinels name.
// No counter has a key like these, since keys of counters contain ":{".
//
//	PREFIX:regions                   the name of the data set, and the number of its last change
//	PREFIX:regions:changed           counters by the number of their last change
//	PREFIX:regions:ends              counters by when they end
//	PREFIX:regions:heard             other regions by the time up to which all that they counted is known here
//	PREFIX:regions:to:NAME           the instance that tells the region NAME
//	PREFIX:regions:to:NAME:cursor    how far it has told
//
// They need no commands beyond those of counters and heartbeats.

// fleetRegions is a Store as chain.Regions.
type fleetRegions struct {
	s *Store

	mu  sync.Mutex
	run serverRun // under mu
}

var _ chain.Regions = (*fleetRegions)(nil)

// Regions is for package fleet. It is nil for a cluster and for shards: a script that notes
// what has changed would have to reach several servers.
func (s fleetStore) Regions() chain.Regions {
	if s.apart() {
		return nil
	}
	return &fleetRegions{s: s.Store}
}

var (
	feedScript  = sync.OnceValue(func() *script { return newScript("feed") })
	greetScript = sync.OnceValue(func() *script { return newScript("greet") })
	heardScript = sync.OnceValue(func() *script { return newScript("heard") })
)

var errRegionsApart = errors.New("regions need a single Redis each, or Sentinels; not a cluster, nor shards")

func (s *Store) regionKey(name string) string { return s.prefix + ":regions" + name }

// regionKeys returns the keys in which a script notes that it has changed a counter of several regions.
func (s *Store) regionKeys() []string {
	return []string{s.regionKey(""), s.regionKey(":changed"), s.regionKey(":ends")}
}

// newDataSet returns a random name for a data set that has none.
func newDataSet() string {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	return string(name[:])
}

const (
	feedCounters = 512       // counters that one call lists, at most
	feedBytes    = 256 << 10 // of one reply, unless one counter takes more
	maxRegion    = 64        // bytes of a name
	maxRegions   = 64
)

// Feed implements chain.Regions.
func (r *fleetRegions) Feed(ctx context.Context, q chain.FeedQuery) (f chain.Feed, err error) {
	const what = "list what regions have counted"
	ctx, end := r.s.withDeadline(ctx)
	defer end()
	run, err := r.serverRun(ctx)
	if err != nil {
		return f, r.s.failure(what, err)
	}
	to, own := r.s.regionKey(":to:"+q.To), q.Own
	if q.All {
		own = 0
	}
	text, err := r.s.runText(ctx, r.s.endpoints[0], feedScript(), append(r.s.regionKeys(), to, to+":cursor"),
		fmt.Sprintf("%016x%016x", q.Holder[0], q.Holder[1]), decimal(int64(math.Ceil(q.Hold.Seconds()))),
		decimal(q.Since), decimal(own), q.Save, decimal(feedCounters), decimal(feedBytes))
	if err != nil {
		return f, r.s.failure(what, err)
	}
	held, last, more, left, count, set, saved := text.number(), text.number(), text.number(), text.number(), text.number(), text.number(), text.number()
	f = chain.Feed{Held: held == 1, Last: last, More: more == 1, Left: int(left), DataSet: hex.EncodeToString([]byte(text.take(set))) + run, Saved: text.take(saved)}
	for range min(count, feedCounters) {
		size, rest := text.number(), text.number()
		name, in := strings.CutPrefix(text.take(size), r.s.prefix+":")
		counter, ok := readReplica(&replyText{rest: text.take(rest)})
		if !in || !ok {
			return chain.Feed{}, r.s.failure(what, invalidReply("a counter that cannot be read"))
		}
		counter.Name = name
		f.Counters = append(f.Counters, counter)
	}
	if text.broken || text.rest != "" || count > feedCounters {
		return chain.Feed{}, r.s.failure(what, invalidReply("a list of counters that breaks off"))
	}
	return f, nil
}

// readReplica reads a counter as feed.lua lists it.
func readReplica(text *replyText) (c chain.Replica, ok bool) {
	c.Generation = text.number()
	parts, instances := text.number(), text.number()
	for range min(parts, int64(len(text.rest)/16)) {
		c.Parts = append(c.Parts, chain.TallyPart{Start: text.number(), End: text.number()})
	}
	for range min(instances, int64(len(text.rest)/64)) {
		var one chain.ReplicaInstance
		one.ID = text.handle()
		one.Number = uint64(text.number())
		_, _ = text.number(), text.number() // its demand concerns only its own region
		one.Region = text.number()
		_ = text.number() // the number of its last change means nothing to another region
		for range min(text.number(), int64(len(text.rest)/16)) {
			one.Counts = append(one.Counts, chain.TallyPart{Start: text.number(), Count: text.number()})
		}
		c.Instances = append(c.Instances, one)
	}
	ok = !text.broken && text.rest == "" && int64(len(c.Parts)) == parts && int64(len(c.Instances)) == instances
	return c, ok && soundReplica(&c)
}

// soundReplica reports whether scripts can add up a counter: its numbers are exact as floats, and
// all counts are of parts that it has.
func soundReplica(c *chain.Replica) bool {
	sound := func(n int64) bool { return n >= 0 && n < 1<<53 }
	ok, ends := sound(c.Generation), make(map[int64]bool, len(c.Parts))
	for _, p := range c.Parts {
		ok = ok && sound(p.Start) && sound(p.End)
		ends[p.Start] = true
	}
	for _, one := range c.Instances {
		ok = ok && sound(int64(one.Number)) && sound(one.Region)
		for _, p := range one.Counts {
			ok = ok && sound(p.Count) && ends[p.Start]
		}
	}
	return ok
}

// Merge implements chain.Regions. It takes one round trip, and one more if serverRun has to ask.
func (r *fleetRegions) Merge(ctx context.Context, g chain.Greeting, counters []chain.Replica) (w chain.Welcome, err error) {
	const what = "tell a region what another has counted"
	if len(counters) > chain.MaxMerge {
		return w, fmt.Errorf("redis: %s: %d counters at once, at most %d", what, len(counters), chain.MaxMerge)
	}
	ctx, end := r.s.withDeadline(ctx)
	defer end()
	run, err := r.serverRun(ctx)
	if err != nil {
		return w, r.s.failure(what, err)
	}
	calls := make([]tallyCall, 0, len(counters))
	for i := range counters {
		if !soundReplica(&counters[i]) {
			return w, fmt.Errorf("redis: %s (%s): %w", what, counters[i].Name, errTallyRange)
		}
		calls = append(calls, r.call(g.To, &counters[i]))
	}
	some := make([]*tallyCall, len(calls))
	for i := range calls {
		some[i] = &calls[i]
	}
	var merged sync.WaitGroup
	if len(some) > 0 {
		merged.Go(func() { r.s.endpoints[0].runTallies(ctx, some) })
	}
	age := int64(-1)
	if g.Age >= 0 {
		age = g.Age.Microseconds()
	}
	text, err := r.s.runText(ctx, r.s.endpoints[0], greetScript(), []string{r.s.regionKey(""), r.s.regionKey(":heard")}, g.From, decimal(age), newDataSet())
	merged.Wait()
	for i := range calls {
		c := &calls[i]
		if c.err == nil {
			_, c.err = c.answer()
		}
		err = errors.Join(err, c.err)
	}
	if err != nil {
		return w, r.s.failure(what, err)
	}
	return chain.Welcome{DataSet: hex.EncodeToString([]byte(text.take(16))) + run}, nil
}

// call returns the call that tells region number to what another region has counted in a counter.
func (r *fleetRegions) call(to int64, counter *chain.Replica) tallyCall {
	c := tallyCall{keys: append([]string{r.s.prefix + ":" + counter.Name}, r.s.regionKeys()...), tag: r.s.tag()}
	var numbers, instances packer
	for _, n := range [...]int64{0, counter.Generation, to, 1, int64(len(counter.Parts))} {
		numbers.int(n)
	}
	for _, p := range counter.Parts {
		numbers.int(p.Start)
		numbers.int(p.End)
	}
	for _, one := range counter.Instances {
		instances.handle(one.ID)
		for _, n := range [...]int64{int64(one.Number), 0, 0, one.Region, int64(len(one.Counts))} {
			instances.int(n)
		}
		for _, p := range one.Counts {
			instances.int(p.Start)
			instances.int(p.Count)
		}
	}
	c.args = c.tag.before(string(numbers), string(instances), newDataSet())
	return c
}

// Heard implements chain.Regions.
func (r *fleetRegions) Heard(ctx context.Context) (at map[string]time.Time, now time.Time, err error) {
	const what = "read when regions were heard of"
	ctx, end := r.s.withDeadline(ctx)
	defer end()
	text, err := r.s.runText(ctx, r.s.endpoints[0], heardScript(), []string{r.s.regionKey(":heard")}, decimal(maxRegions), decimal(maxRegion))
	if err != nil {
		return nil, now, r.s.failure(what, err)
	}
	now, at = time.UnixMicro(text.number()), map[string]time.Time{}
	for len(text.rest) > 0 && !text.broken {
		heard := time.UnixMicro(text.number())
		at[text.take(text.number())] = heard
	}
	if text.broken {
		return nil, now, r.s.failure(what, invalidReply("a list of regions that breaks off"))
	}
	return at, now, nil
}

// serverRun names the run of the server that answers. It is part of the name of a data set: after a
// restart or a failover, the last changes may be missing.
type serverRun struct {
	id    string
	asked time.Time
}

// serverRunLasts is for how long the answer of the server counts.
const serverRunLasts = time.Second

// serverRun returns the name of the server's run; "" if the user of Redis may not ask for it.
func (r *fleetRegions) serverRun(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.run.asked) < serverRunLasts {
		return r.run.id, nil
	}
	client, err := r.s.endpoints[0].client.get(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now()
	text, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if e, refused := rueidis.IsRedisErr(err); err != nil && !(refused && strings.HasPrefix(e.Error(), "NOPERM")) {
		return "", err
	}
	r.run = serverRun{asked: now}
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			r.run.id = "/" + id
		}
	}
	return r.run.id, nil
}
