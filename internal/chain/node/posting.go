package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// How the backlog is posted: all that there is, many calls at a time, so that it is done
// well before keys that were counted locally go back to the backend; see heldFor. Each
// call is for one counter.
const (
	postEvery    = 10 * time.Millisecond  // pause between rounds, with jitter from half to one and a half
	maxPosts     = 1 << 13                // posts in a round; then the circuit is looked at again
	postWithin   = 10                     // timeout of a post, in deadlines
	posters      = 512                    // posts at the same time
	maxTries     = 600                    // tries of a post: about a minute
	enoughFailed = 8                      // failed posts after which a round ends, if no more than these succeeded
	postPause    = 100 * time.Millisecond // pause after a round with a failure
)

// post posts the backlog, if the server answers and it is time: when says from when on, and is set
// to the time of the next round. What could not be posted is tried again until it has faded or was
// tried too often.
func (s *server) post(when *time.Duration) {
	n := s.node
	n.mu.Lock()
	now := n.now()
	if n.handedOver { // it is posted by a successor
		*when = now + postPause
	}
	if !s.circuit.answers() || now < *when {
		n.mu.Unlock()
		return
	}
	posts := s.backlog.take(maxPosts, now, s.reckonedLocked(now))
	s.backlog.sending = posts
	n.mu.Unlock()
	again := s.postAll(posts)
	*when = n.now() + jitter(postEvery)
	if len(again) > 0 {
		*when = n.now() + jitter(postPause)
	}
	n.mu.Lock()
	s.backlog.sent(again, n.now())
	n.mu.Unlock()
}

// postAll sends posts and returns those that go back to the backlog. A post that the server rejects
// does not hold up others; when most fail for other reasons, the rest is not sent.
func (s *server) postAll(posts []post) (again []post) {
	var (
		mu   sync.Mutex // over again
		next atomic.Int64
		good atomic.Int64
		bad  atomic.Int64
		all  sync.WaitGroup
	)
	work := func() {
		for {
			i := int(next.Add(1) - 1)
			if i >= len(posts) {
				return
			}
			p := &posts[i]
			if n := bad.Load(); n < enoughFailed || n <= good.Load() {
				err := s.postOne(p)
				if err == nil {
					good.Add(1)
					continue
				}
				if !errors.Is(err, tidegate.ErrCannotAsk) {
					bad.Add(1)
				}
				if errors.Is(err, errLost) {
					continue
				}
				p.entry.tries++
			}
			mu.Lock()
			again = append(again, *p)
			mu.Unlock()
		}
	}
	for range min(posters, len(posts)) {
		all.Go(work)
	}
	all.Wait()
	return again
}

// errLost wraps the error of a post that may have been charged and so cannot be sent again.
var errLost = errors.New("nobody knows whether it was charged")

// postOne sends one post, and counts the result.
func (s *server) postOne(p *post) error {
	n := s.node
	until := n.contexts.post.get(n, postWithin*n.o.Deadline) // nobody waits for it
	told := p.chainPost()
	err := s.callInnerBy(context.Background(), innerCall{until: until, aside: true}, func(ctx context.Context) error { return n.charge(ctx, told) })
	switch {
	case err == nil:
		n.count.posted.Add(1)
	case unsure(err) && n.unaskable.barred(p.entry.limit): // then it was not charged
		return fmt.Errorf("%w: %v", tidegate.ErrCannotAsk, err)
	case !n.chargesOnce.Load(): // a second time would be charged again
		if mayBeCharged(err) {
			n.mu.Lock()
			s.backlog.lost++
			n.mu.Unlock()
			return fmt.Errorf("%w: %w", errLost, err)
		}
	case mayHaveArrived(err):
		p.doubt = true
	}
	return err
}

// charge posts to the backend, or calls Adjust if the backend does not support posts.
func (n *Node) charge(ctx context.Context, p chain.Post) error {
	if n.chargesOnce.Load() {
		err := n.inner.Post(ctx, p)
		if !errors.Is(err, tidegate.ErrUnsupported) {
			return err
		}
		n.chargesOnce.Store(false)
	}
	return n.inner.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{p.Check})
}
