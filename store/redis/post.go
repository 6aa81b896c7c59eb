package redis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Post is for package fleet: it makes a charge that can be sent again until it is answered,
// and counts once. The script stores the number of the process's last post beside the counter,
// for as long as that post may be sent again.
func (s fleetStore) Post(ctx context.Context, p chain.Post) error {
	ctx, end := s.withDeadline(ctx)
	defer end()
	c := &p.Check
	lim, err := s.compile(c.Limit)
	if err != nil {
		return err
	}
	if c.Cost < 0 || p.Number >= 1<<53 {
		return fmt.Errorf("redis: Post(%s): cost %d, number %d", c.Limit, c.Cost, p.Number)
	}
	lim = lim.asLastSeen()
	key := lim.name(c.Key)
	one, ok := adjustment(lim, key, 0, c.Cost)
	if !ok {
		return nil
	}
	mark := recordAction{key: s.postKey(p.Boot, c.Limit, key), act: settleNumber, actual: int64(p.Number), life: postLife(c.Limit)}
	if at := s.formerOf(key); at != nil && !at.leftOut() {
		beside, end := at.untilGone(ctx)
		old := mark
		old.at = at
		_, _, _ = s.apply(beside, []change{one}, old) // what fails there is left out
		end()
	}
	_, _, err = s.apply(ctx, []change{one}, mark)
	return s.failure("post", err)
}

// postKey returns the key of the mark that posts of a process leave beside the counter
// under key.
func (s *Store) postKey(boot [2]uint64, l *tidegate.Limit, key string) string {
	var start [16]byte
	binary.LittleEndian.PutUint64(start[:8], boot[0])
	binary.LittleEndian.PutUint64(start[8:], boot[1])
	sum := sha256.Sum256(append(start[:], l.Identity()...))
	return s.prefix + ":posted:" + base64.RawURLEncoding.EncodeToString(sum[:15]) + "{" + tagOf(key) + "}"
}

// postLife returns how long the number of a post is kept: while its charge may count, which is
// two periods of a window, or twice the time that a bucket takes to drain, and a minute more.
// No post is sent again after chain.PostLife, so that and a minute is enough.
func postLife(l *tidegate.Limit) time.Duration {
	if l.Algorithm == tidegate.Quota {
		return chain.PostLife + time.Minute
	}
	life := 2 * float64(l.Period) * max(1, float64(l.Capacity())/float64(l.Events))
	return time.Duration(min(life, float64(chain.PostLife))) + time.Minute
}
