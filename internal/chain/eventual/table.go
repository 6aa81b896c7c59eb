package eventual

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// table finds counters by name. It is bounded: the first to be evicted are idle counters that the
// shared store has the counts of.
type table struct {
	seed      maphash.Seed
	shards    [shards]shard
	most      int // the most that the counters of a shard may weigh
	order     atomic.Uint64
	forgotten atomic.Int64
}

const shards = 64

type shard struct {
	mu     sync.Mutex
	all    map[counterName]*counter
	weight int
}

type counterName struct{ identity, key string }

// windowsOfWeight is how many windows weigh as much as a counter itself.
const windowsOfWeight = 16

func (t *table) open(seed maphash.Seed, keys int) {
	t.seed, t.most = seed, max(keys/shards, 1)
	for i := range t.shards {
		t.shards[i].all = make(map[counterName]*counter)
	}
}

func (t *table) shard(key string) *shard { return &t.shards[maphash.String(t.seed, key)%shards] }

// find returns the counter of a check, and makes one if needed. If there is no room, it returns nil and
// the answer to the request. It does not evict the counters in with, which are of the same request.
func (t *table) find(s *Store, check *tidegate.Check, with []*counter) (c *counter, full tidegate.Decision) {
	name := counterName{check.Limit.Identity(), check.Key}
	sh := t.shard(check.Key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if c := sh.all[name]; c != nil {
		return c, full
	}
	weight := 1 + windowsOf(check.Limit)/windowsOfWeight
	for sh.weight+weight > t.most && sh.hasOthers(with) {
		if !t.evictLocked(s, sh, with, check.Limit.OnFull == tidegate.RefuseNew) {
			return nil, tidegate.Decision{Err: tidegate.ErrFull, Limit: check.Limit, RetryAfter: time.Second}
		}
	}
	name.key = strings.Clone(name.key) // the caller may use its memory again
	c = &counter{name: name, order: t.order.Add(1), weight: weight, limit: check.Limit, instance: newInstance()}
	sh.all[name] = c
	sh.weight += weight
	return c, full
}

// hasOthers reports whether a shard has counters that are not in with.
func (sh *shard) hasOthers(with []*counter) bool {
	if len(sh.all) > len(with) {
		return true
	}
	for _, c := range sh.all {
		if !slices.Contains(with, c) {
			return true
		}
	}
	return false
}

// An eviction chooses among sample counters. If none of them is known to the store, it looks at up to
// maxSample.
const (
	sample    = 16
	maxSample = 512
)

// evictLocked removes the least recently used of some counters whose counts the store has. If there is
// none, it removes one with unsent events, which are then forgotten, unless keep is set. It reports
// whether it has removed one. The counters in with stay.
func (t *table) evictLocked(s *Store, sh *shard, with []*counter, keep bool) bool {
	var sent, unsent *counter
	looked, us := 0, s.clock.now().UnixMicro()
	for _, c := range sh.all {
		if slices.Contains(with, c) || !c.mu.TryLock() {
			continue // it is in use
		}
		best := &unsent
		if c.toldLocked(us) && (c.told > 0 || len(c.counts) == 0 || c.counts[len(c.counts)-1].over <= us) {
			best = &sent
		}
		if *best == nil || c.touched < (*best).touched {
			if *best != nil {
				(*best).mu.Unlock()
			}
			*best = c
		} else {
			c.mu.Unlock()
		}
		if looked++; looked >= sample && (sent != nil || looked >= maxSample) {
			break
		}
	}
	if sent != nil && unsent != nil {
		unsent.mu.Unlock()
		unsent = nil
	}
	c := sent
	if c == nil {
		if c = unsent; c == nil {
			return false
		}
		if keep {
			c.mu.Unlock()
			return false
		}
		t.forgotten.Add(1)
	}
	defer c.mu.Unlock()
	t.removeLocked(s, sh, c)
	return true
}

// removeLocked removes a counter, which is locked, and its counts in the memory store.
func (t *table) removeLocked(s *Store, sh *shard, c *counter) {
	c.gone = true
	c.wakeLocked()
	delete(sh.all, c.name)
	sh.weight -= c.weight
	_ = s.local.Recount(c.name.key, c.limit, nil) // of a limit that was asked about before
}

// each calls do with every counter, one shard after the other, holding no lock.
func (t *table) each(do func(*counter)) {
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		all := make([]*counter, 0, len(sh.all))
		for _, c := range sh.all {
			all = append(all, c)
		}
		sh.mu.Unlock()
		for _, c := range all {
			do(c)
		}
	}
}
