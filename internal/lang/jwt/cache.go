package jwt

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	maxAge    = time.Minute      // of a valid token
	maxBadAge = 10 * time.Second // of one that is not; by nbf, it may be valid later

	shards = 16
	// Bounds of a generation, of which a shard has two for each verdict:
	// together fewer than 10,000 tokens and 16 MiB of claims.
	maxGood      = 250
	maxBad       = 60
	maxGoodBytes = 16 << 20 / shards / 2
)

// cache remembers verdicts by the hash of the token. Invalid tokens have their
// own room, so that a flood of forged ones drives no valid one out.
// The zero value is empty.
type cache [shards]shard

type shard struct {
	mu        sync.Mutex
	good, bad generations
}

// generations forget the older half when the younger one is full.
type generations struct {
	young, old map[[sha256.Size]byte]entry
	bytes      int // of claims in young
}

type entry struct {
	claims Claims // the zero value means that the token is not valid
	reason Reason // why it is not
	until  int64  // Unix nanoseconds
}

func (c *cache) get(sum *[sha256.Size]byte, now time.Time) (claims Claims, reason Reason, known bool) {
	s := &c[sum[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range [...]map[[sha256.Size]byte]entry{s.good.young, s.good.old, s.bad.young, s.bad.old} {
		if e, ok := g[*sum]; ok && e.fresh(now) {
			return e.claims, e.reason, true
		}
	}
	return Claims{}, Valid, false
}

// fresh reports whether e still counts. It looks at both ends: after the clock was set
// back, what was remembered before must not last until the clock has caught up.
func (e entry) fresh(now time.Time) bool {
	left := e.until - now.UnixNano()
	return left > 0 && left <= int64(maxAge)
}

// put remembers claims until then; without claims, why the token is not valid.
func (c *cache) put(sum *[sha256.Size]byte, claims Claims, reason Reason, now, until time.Time) {
	s := &c[sum[0]%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if claims == (Claims{}) {
		s.bad.put(sum, entry{reason: reason, until: now.Add(maxBadAge).UnixNano()}, maxBad)
		return
	}
	s.good.put(sum, entry{claims: claims, until: until.UnixNano()}, maxGood)
}

func (g *generations) put(sum *[sha256.Size]byte, e entry, most int) {
	size := len(e.claims.object)
	if g.young == nil || len(g.young) >= most || g.bytes+size > maxGoodBytes {
		g.old, g.young, g.bytes = g.young, make(map[[sha256.Size]byte]entry), 0
	}
	g.young[*sum] = e
	g.bytes += size
}
