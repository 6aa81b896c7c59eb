package redis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/chain"
)

// Tallies, which instances count by themselves, have keys of their own, beside the counters of the
// same subject: tg:RULE:{SCOPE=VALUE}:tally:HASH, with the hash of the limit's identity.

// fleetTallies is the chain.Tallies of a Store.
type fleetTallies struct{ s *Store }

var _ chain.Tallies = fleetTallies{}

// Tallies is for package fleet.
func (s fleetStore) Tallies() chain.Tallies { return fleetTallies{s.Store} }

var (
	tallyScript = sync.OnceValue(func() *script { return newScript("tally") })
	clockScript = sync.OnceValue(func() *script { return newScript("clock") })
)

var (
	errTallyRange = errors.New("numbers out of range")
	errSilent     = errors.New("the server does not answer")
)

// Exchange implements chain.Tallies in one round trip to each server. Each tally is a script call of
// its own, so that keys need not be in one slot. The tally of a key that has moved is also sent to its
// former shard, whose answer is preferred: it knows what instances with the old list count. A silent
// shard is not asked until it is heard again, because the keys of other shards would wait for it.
func (t fleetTallies) Exchange(ctx context.Context, tallies []chain.Tally) error {
	if len(tallies) == 0 {
		return nil
	}
	if len(tallies) > chain.MaxTallies {
		return fmt.Errorf("redis: exchange %d tallies: at most %d at once", len(tallies), chain.MaxTallies)
	}
	ctx, end := t.s.withDeadline(ctx)
	defer end()
	calls := make([]tallyCall, 0, len(tallies))
	mute := make(map[*endpoint]bool)
	for i := range tallies {
		one := &tallies[i]
		if one.Err = t.check(one); one.Err != nil {
			continue
		}
		c := t.call(one)
		if c.at = t.s.formerOf(c.keys[0]); c.at != nil && !c.at.leftOut() {
			calls = append(calls, c)
		}
		c.at = t.s.home(c.keys[0])
		if _, known := mute[c.at]; !known {
			mute[c.at] = t.s.sharded() && c.at.mute()
		}
		if mute[c.at] {
			c.at.lookAgain()
			c.err = c.at.failed(errSilent)
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil
	}
	t.runAll(ctx, calls)
	answered, err := false, error(nil)
	for i := range calls {
		c := &calls[i]
		if i > 0 && calls[i-1].tally == c.tally && c.tally.Err == nil {
			continue // its former owner has answered
		}
		if c.tally.Err = c.err; c.err == nil {
			c.tally.Answer, c.tally.Err = c.answer()
		}
		if c.tally.Err != nil {
			err = t.s.failure("exchange tallies", c.tally.Err)
			c.tally.Err = err
		} else {
			answered = true
		}
	}
	if answered || t.anyShardUp() {
		return nil
	}
	return err
}

// anyShardUp reports whether a shard is up. If those that were asked did not answer, others may: that is
// no failure of the whole store.
func (t fleetTallies) anyShardUp() bool {
	return slices.ContainsFunc(t.s.endpoints[:t.s.shards], func(e *endpoint) bool { return !e.gone() })
}

// check returns what is wrong with a tally, or nil.
func (t fleetTallies) check(one *chain.Tally) error {
	if _, err := t.s.compile(one.Limit); err != nil {
		return err
	}
	if one.Region != 0 && t.s.apart() {
		return fmt.Errorf("redis: exchange tallies (%s): %w", one.Limit, errRegionsApart)
	}
	const most = 1 << 53
	sound := one.Number < most && one.Region >= 0 && one.Region < most && one.Generation >= 0 && one.Generation < most && one.Demand >= 0 && one.Demand < most
	for _, p := range one.Parts {
		sound = sound && p.Start >= 0 && p.Start < most && p.End >= 0 && p.End < most && p.Count >= 0 && p.Count < most
	}
	if !sound {
		return fmt.Errorf("redis: exchange tallies (%s): %w", one.Limit, errTallyRange)
	}
	return nil
}

// tallyCall is a call of the script tally, and its reply.
type tallyCall struct {
	tally *chain.Tally // nil if it tells of a counter of another region
	at    *endpoint
	keys  []string
	args  []string
	tag   tag    // of the reply
	text  string // the reply
	err   error
}

func (t fleetTallies) call(one *chain.Tally) tallyCall {
	c := tallyCall{tally: one, keys: []string{t.key(one)}, tag: t.s.tag()}
	forget := int64(0)
	if one.Reset {
		forget = 1
	}
	var numbers, instance packer
	for _, n := range [...]int64{forget, one.Generation, one.Region, 0, int64(len(one.Parts))} {
		numbers.int(n)
	}
	instance.handle(one.Instance)
	for _, n := range [...]int64{int64(one.Number), one.DemandLasts.Microseconds(), one.Demand, one.Region, int64(len(one.Parts))} {
		instance.int(n)
	}
	for _, p := range one.Parts {
		numbers.int(p.Start)
		numbers.int(p.End)
		instance.int(p.Start)
		instance.int(p.Count)
	}
	c.args = c.tag.before(string(numbers), string(instance))
	if one.Region != 0 {
		c.keys = append(c.keys, t.s.regionKeys()...)
		c.args = append(c.args, newDataSet())
	}
	return c
}

// key returns the key in Redis of the tallies of a counter.
func (t fleetTallies) key(one *chain.Tally) string {
	name := append(make([]byte, 0, 160), t.s.prefix...)
	name = append(name, ':')
	name = appendPart(name, one.Limit.Name)
	name = append(name, ":{"...)
	name = appendTag(name, one.Limit.Scope, one.Key)
	sum := sha256.Sum256([]byte(one.Limit.Identity()))
	name = append(name, "}:tally:"...)
	return string(base64.RawURLEncoding.AppendEncode(name, sum[:12]))
}

// runAll sends calls to their endpoints, all at the same time. Those that have failed already are left out.
func (t fleetTallies) runAll(ctx context.Context, calls []tallyCall) {
	byEndpoint := make(map[*endpoint][]*tallyCall)
	for i := range calls {
		if at := calls[i].at; calls[i].err == nil {
			byEndpoint[at] = append(byEndpoint[at], &calls[i])
		}
	}
	var all sync.WaitGroup
	for at, some := range byEndpoint {
		all.Go(func() { at.runTallies(ctx, some) })
	}
	all.Wait()
}

// runTallies sends calls to one endpoint. It waits for a shard no longer than it takes to find out
// whether that is gone, because the calls to others wait as well.
func (e *endpoint) runTallies(ctx context.Context, calls []*tallyCall) {
	if e.name != "" {
		var end context.CancelFunc
		ctx, end = e.untilGone(ctx)
		defer end()
	}
	client, err := e.client.get(ctx)
	if err == nil {
		runTallies(ctx, client, calls)
	}
	for _, c := range calls {
		if err != nil {
			c.err = err
		}
		c.err = e.failed(c.err)
	}
}

// runTallies sends all calls together, and the text of the script to servers that do not know it.
func runTallies(ctx context.Context, client rueidis.Client, calls []*tallyCall) {
	sc := tallyScript()
	var unknown []*tallyCall
	commands := make(rueidis.Commands, len(calls))
	for i := range calls {
		commands[i] = client.B().Evalsha().Sha1(sc.sha).Numkeys(int64(len(calls[i].keys))).Key(calls[i].keys...).Arg(calls[i].args...).Build()
	}
	for i, result := range client.DoMulti(ctx, commands...) {
		c := calls[i]
		if e, ok := rueidis.IsRedisErr(result.Error()); ok && e.IsNoScript() {
			unknown = append(unknown, c)
			continue
		}
		c.text, c.err = result.ToString()
	}
	if len(unknown) == 0 {
		return
	}
	commands = commands[:0]
	for _, c := range unknown {
		commands = append(commands, client.B().Eval().Script(sc.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build())
	}
	for i, result := range client.DoMulti(ctx, commands...) {
		unknown[i].text, unknown[i].err = result.ToString()
	}
}

// answer parses the reply.
func (c *tallyCall) answer() (a chain.TallyAnswer, err error) {
	got, err := parseReply(c.text, c.tag)
	if err != nil {
		return a, err
	}
	if len(got)%3 != 2 {
		return a, invalidReply("%d numbers about a tally", len(got))
	}
	a.Generation, a.Demand = got[0], got[1]
	for got = got[2:]; len(got) > 0; got = got[3:] {
		a.Totals = append(a.Totals, chain.TallyPart{Start: got[0], Count: got[1], Abroad: got[2]})
	}
	for _, p := range a.Totals {
		if p.Start < 0 || p.Count < 0 || p.Abroad < 0 || a.Generation < 0 || a.Demand < 0 {
			return chain.TallyAnswer{}, invalidReply("a tally with numbers below 0")
		}
	}
	return a, nil
}

// Time implements chain.Tallies. In a cluster it reads the clock of the master that has the set of
// nodes, and on shards that of the first by name that answers, wherever keys are counted. While the
// list of shards changes, it asks those of the former list first, which all instances know.
func (t fleetTallies) Time(ctx context.Context) (time.Time, error) {
	ctx, end := t.s.withDeadline(ctx)
	defer end()
	var us int64
	var err error
	for _, at := range t.clocks() {
		if us, err = t.timeAt(ctx, at); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return time.Time{}, t.s.failure("read the time", err)
	}
	return time.UnixMicro(us), nil
}

// clocks returns the endpoints whose clock counts, in the order in which to try them. Those that are
// gone come last.
func (t fleetTallies) clocks() (all []*endpoint) {
	var gone []*endpoint
	for _, e := range append(byName(t.s.was), byName(t.s.endpoints[:max(t.s.shards, 1)])...) {
		switch {
		case slices.Contains(all, e) || slices.Contains(gone, e):
		case e.gone():
			gone = append(gone, e)
		default:
			all = append(all, e)
		}
	}
	return append(all, gone...)
}

// timeAt reads the clock of an endpoint, in µs.
func (t fleetTallies) timeAt(ctx context.Context, at *endpoint) (int64, error) {
	if at.name != "" {
		var end context.CancelFunc
		ctx, end = at.untilGone(ctx)
		defer end()
	}
	of := t.s.tag()
	var head packer
	head.number(float64(of))
	got, err := at.runNumbers(ctx, clockScript(), []string{t.s.nodeSet()}, []string{string(head)}, of)
	if err == nil && (len(got) != 1 || got[0] <= 0) {
		err = invalidReply("a time of %d", got)
	}
	if err != nil {
		return 0, err
	}
	return got[0], nil
}
