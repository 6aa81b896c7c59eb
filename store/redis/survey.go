package redis

import (
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxSurveyed is how many keys of a counter a Survey asks about. Of more, it asks about a
// sample that does not depend on what is counted for them.
const maxSurveyed = 10_000

// surveyWorkers is how many keys are asked about at a time.
const surveyWorkers = 16

// Survey calls f for keys that something is counted for in each of several counters, with what
// each limit asked about would leave for it now: 0 where one more event would be refused.
// asked[i] are checks without keys, whose limits share the Identity of counter i. It charges
// nothing and changes nothing, while Take with limits that are not in force could. key is ""
// where Redis has only a hash of it. left is reused. seen[i] is the share of the keys of counter
// i that f was called for: below 1 if there are more than 10,000, of which it takes a sample.
//
// It goes through all keys by SCAN, while Redis works on.
func (s *Store) Survey(ctx context.Context, asked [][]tidegate.Check, _ [][]string, f func(i int, key string, left []int64)) (seen []float64, err error) {
	counters := make([]*surveyed, len(asked))
	byRule := make(map[string][]*surveyed)
	for i, checks := range asked {
		if counters[i], err = newSurveyed(s.prefix, checks); err != nil {
			return nil, err
		}
		if len(checks) > 0 {
			name := escape(checks[0].Limit.Name)
			byRule[name] = append(byRule[name], counters[i])
		}
	}
	only := ""
	for _, counters := range byRule {
		if len(byRule) == 1 {
			only = counters[0].lims[0].limit.Name
		}
	}
	for k, err := range s.Keys(ctx, only) {
		if err != nil {
			return nil, err
		}
		rule, _, _ := strings.Cut(strings.TrimPrefix(k.Name, s.prefix+":"), ":{") // k.Rule may be a hash
		for _, c := range byRule[rule] {
			if c.counts(&k) {
				c.add(k.Subject)
			}
		}
	}
	seen = make([]float64, len(asked))
	for i, c := range counters {
		seen[i] = c.share()
		if err := c.ask(ctx, s, func(key string, left []int64) { f(i, key, left) }); err != nil {
			return nil, s.failure("survey", err)
		}
	}
	return seen, nil
}

// surveyed is a counter whose keys are surveyed. tags is a sample of their tags: those whose hash ends in
// so many zero bits.
type surveyed struct {
	lims  []*compiledLimit
	waits []int64 // ticks; of each limit
	scope string
	tags  map[string]struct{}
	zeros uint
	seed  maphash.Seed
}

func newSurveyed(prefix string, asked []tidegate.Check) (*surveyed, error) {
	c := &surveyed{tags: make(map[string]struct{}), seed: maphash.MakeSeed()}
	for i := range asked {
		l := asked[i].Limit
		if l == nil || l.Algorithm == tidegate.Deny || l.Identity() != asked[0].Limit.Identity() {
			return nil, errors.New("redis: Survey: the limits are not of one counter")
		}
		c.lims = append(c.lims, newCompiledLimit(prefix, l)) // none that others ask with
		c.waits = append(c.waits, algo.Ticks(asked[i].MaxWait))
		c.scope = l.Scope
	}
	return c, nil
}

// counts reports whether the counter can be under a key.
func (c *surveyed) counts(k *Key) bool {
	l := c.lims[0].limit
	period := l.Period.String()
	switch c.lims[0].kind {
	case leases:
		if k.Kind != "slots" || k.Period != period {
			return false
		}
	case logs, parts:
		if k.Kind != "" && (k.Kind != "log" || k.Period != period) {
			return false
		}
	default:
		if k.Kind != "" {
			return false
		}
	}
	return tagHasScope(k.Subject, c.scope)
}

// tagHasScope reports whether what stands in braces is of a scope.
func tagHasScope(tag, scope string) bool {
	if scope == "" {
		return tag == "=" || !strings.Contains(tag, "=")
	}
	if value, ok := strings.CutPrefix(tag, escape(scope)+"="); ok && !strings.Contains(value, ",") {
		return true
	}
	var names []string
	for pair := range strings.SplitSeq(tag, ",") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	var parts []string
	for name := range strings.SplitSeq(scope, ",") {
		parts = append(parts, escape(name))
	}
	return strings.Join(names, ",") == strings.Join(parts, ",")
}

// add adds a key to the sample, which halves whenever it is too large.
func (c *surveyed) add(tag string) {
	if !c.sampled(tag) {
		return
	}
	c.tags[tag] = struct{}{}
	for len(c.tags) > maxSurveyed {
		c.zeros++
		for tag := range c.tags {
			if !c.sampled(tag) {
				delete(c.tags, tag)
			}
		}
	}
}

func (c *surveyed) sampled(tag string) bool {
	return maphash.String(c.seed, tag)&(1<<c.zeros-1) == 0
}

func (c *surveyed) share() float64 { return 1 / float64(uint64(1)<<c.zeros) }

// ask asks about every key of the sample.
func (c *surveyed) ask(ctx context.Context, s *Store, f func(key string, left []int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tags := make(chan string)
	var telling sync.Mutex
	var workers sync.WaitGroup
	for range surveyWorkers {
		workers.Go(func() {
			for tag := range tags {
				left, live, err := c.look(ctx, s, tag)
				if err != nil {
					cancel(err)
					continue
				}
				if live {
					telling.Lock()
					f(c.keyOf(tag), left)
					telling.Unlock()
				}
			}
		})
	}
	for tag := range c.tags {
		if ctx.Err() != nil {
			break
		}
		tags <- tag
	}
	close(tags)
	workers.Wait()
	return context.Cause(ctx)
}

// look asks about one key, and reports whether anything is counted for it.
func (c *surveyed) look(ctx context.Context, s *Store, tag string) (left []int64, live bool, err error) {
	left = make([]int64, len(c.lims))
	for i, lim := range c.lims {
		lim = lim.asLastSeen()
		p := &pendingCheck{lim: lim, check: &tidegate.Check{Limit: lim.limit}, key: lim.start + tag + lim.end, wait: c.waits[i]}
		g, err := s.ask(ctx, []*pendingCheck{p}, takeParams{copies: 1, peek: true, handle: newSlotHandle([]*pendingCheck{p})})
		if err != nil {
			return nil, false, err
		}
		live = live || p.answer.reset > 0 || g.copies == 0
		if g.copies > 0 {
			left[i] = max(p.answer.left, 1)
		}
	}
	return left, live, nil
}

// keyOf returns the key of a check that is counted under a tag; "" if that has only its hash.
func (c *surveyed) keyOf(tag string) string {
	var values []string
	if c.scope == "" {
		values = []string{tag}
	} else {
		for pair := range strings.SplitSeq(tag, ",") {
			_, value, _ := strings.Cut(pair, "=")
			values = append(values, value)
		}
	}
	for i := range values {
		var ok bool
		if values[i], ok = unescape(values[i]); !ok {
			return ""
		}
	}
	key := values[0]
	if len(values) > 1 {
		key = tidegate.Key(values...)
	}
	lim := c.lims[0]
	if lim.name(key) != lim.start+tag+lim.end {
		return ""
	}
	return key
}
