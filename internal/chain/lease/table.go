package lease

import (
	"slices"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// shards is the number of shards. The hash of its group says which one a supply is in.
const shards = 64

type shard struct {
	mu       sync.Mutex
	supplies map[uint64]*supply // by the hash of their groups; the map and the supplies are under mu
	_        [48]byte           // so that no two shards share a cache line
}

// maxSupplies bounds the supplies of a shard; further keys are decided as if strict. Supplies
// to which no request has come for longer than idle are dropped to make room.
const (
	maxSupplies = 1 << 10
	idle        = time.Second
)

func (s *Store) shard(hash uint64) *shard { return &s.shards[hash%shards] }

// takeGroup decides a group from the portions that are held of it. If the answer is unknown, there
// is no decision.
func (s *Store) takeGroup(g *group) (tidegate.Decision, answer) {
	hash, cost := s.hash(g.checks), g.checks[0].Cost
	g.hash = hash
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now() // after locking: waiting for the lock may take longer than a portion lives
	sup := sh.supplies[hash]
	if sup == nil {
		if !s.heat.add(hash, now) {
			return tidegate.Decision{}, unknown
		}
		if sup = s.newSupply(g.checks); sup == nil || !sh.addLocked(hash, sup, now) {
			return tidegate.Decision{}, unknown
		}
	} else if !same(sup.unit, g.checks) {
		return tidegate.Decision{}, unknown
	}
	from, a := sup.use(cost, now)
	if g.lacks = a == unknown; !g.lacks {
		s.askLocked(sh, sup, now)
	}
	s.settleLocked(sh, sup)
	switch a {
	case used:
		return from.admitted(now), used
	case refused:
		return sup.refuse(cost, now), refused
	}
	return tidegate.Decision{}, unknown
}

// askFor takes a portion, in the background, for a group that lacks one.
func (s *Store) askFor(g *group) {
	if !g.lacks {
		return
	}
	sh := s.shard(g.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sup := sh.supplies[g.hash]; sup != nil {
		s.askLocked(sh, sup, s.now())
	}
}

// life returns how long portions of a group live: the shortest Life of its limits, 0 if one of them
// cannot be leased.
func (s *Store) life(checks []tidegate.Check) time.Duration {
	life, instances := maxLife, s.instances()
	for i := range checks {
		life = min(life, Life(checks[i].Limit, instances))
	}
	return life
}

// newSupply makes an empty supply; nil means that the group cannot be leased.
func (s *Store) newSupply(checks []tidegate.Check) *supply {
	life := s.life(checks)
	if life == 0 {
		return nil
	}
	sup := &supply{unit: slices.Clone(checks), life: life, most: tidegate.MaxCount}
	key := strings.Clone(checks[0].Key)
	for i := range sup.unit {
		c := &sup.unit[i]
		c.Key, c.Cost, c.Over = key, 1, false
		sup.most = min(sup.most, int64(perSecond(c.Limit)*life.Seconds()))
		if c.Limit.Algorithm != tidegate.TokenBucket {
			sup.returns = append(sup.returns, *c)
		}
	}
	return sup
}

// addLocked adds a supply, and reports whether there was room.
func (sh *shard) addLocked(hash uint64, sup *supply, now time.Duration) bool {
	if len(sh.supplies) >= maxSupplies/8 {
		for h, old := range sh.supplies {
			if now-old.asked > idle && !old.inFlight {
				delete(sh.supplies, h)
			}
		}
	}
	if len(sh.supplies) >= maxSupplies {
		return false
	}
	sh.supplies[hash] = sup
	return true
}

// Outstanding returns how many portions with events are held, and how many events are left in them.
func (s *Store) Outstanding() (leases int, events int64) {
	now := s.now()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, sup := range sh.supplies {
			for i := range sup.held {
				if p := &sup.held[i]; p.left > 0 && p.until > now {
					leases++
					events += p.left
				}
			}
		}
		sh.mu.Unlock()
	}
	return leases, events
}
