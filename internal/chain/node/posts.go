package node

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// post is an amount of the backlog that is about to be charged. It is sent under the same name until
// it is known to have arrived, and until then nothing else is posted to its counter. So it is
// charged once, whatever message was lost.
type post struct {
	id     counterID
	entry  *backlogEntry
	amount int64
	boot   [2]uint64
	number uint64
	sent   time.Duration // for the first time
	doubt  bool          // it may have arrived
}

func (p *post) chainPost() chain.Post {
	return chain.Post{Boot: p.boot, Number: p.number, Check: tidegate.Check{Key: p.id.key, Limit: p.entry.limit, Cost: p.amount}}
}

// take takes up to most posts out of the backlog: urgent ones, then others, and then those to be sent again,
// which are more likely to fail. Others wait until all urgent ones have been taken once, and no longer: keys
// that are used up all the time, and posts that always fail, are urgent in every round. reachable is when the
// backend became reachable.
func (b *backlog) take(most int, now, reachable time.Duration) (posts []post) {
	one := func(id counterID) {
		d := b.entries[id]
		if d == nil {
			return
		}
		d.urgent = false
		if _, waits := b.doubtful[id]; waits {
			return
		}
		delete(b.entries, id)
		amount := d.amount(b.start, d.reckoned(now, reachable))
		if most := d.limit.Capacity(); amount > most { // no store charges more unasked
			amount = most
			b.lost++
		}
		if amount > 0 && !d.faded(b.start, now) {
			b.number++
			posts = append(posts, post{id: id, entry: d, amount: amount, boot: b.boot, number: b.number, sent: now})
		}
	}
	for len(posts) < most && len(b.urgent) > 0 {
		one(b.urgent[0])
		b.urgent = b.urgent[1:]
	}
	others := b.drained || len(posts) == 0
	if b.drained = len(b.urgent) == 0; b.drained {
		b.urgent = nil
	}
	if others {
		for id := range b.entries {
			if len(posts) >= most {
				break
			}
			one(id)
		}
	}
	return b.takeDoubtful(posts, most, now, reachable)
}

// takeDoubtful adds the posts that are to be sent again to posts, reduced to what still counts of
// them, up to most in all. Those older than chain.PostLife are lost.
func (b *backlog) takeDoubtful(posts []post, most int, now, reachable time.Duration) []post {
	for id, p := range b.doubtful {
		if len(posts) >= most {
			break
		}
		delete(b.doubtful, id)
		d := p.entry
		p.amount = min(p.amount, d.amount(b.start, d.reckoned(now, reachable)))
		switch {
		case p.amount <= 0 || d.faded(b.start, now):
		case now-p.sent > chain.PostLife: // the backend may have forgotten its number
			b.lost++
		default:
			posts = append(posts, p)
		}
	}
	return posts
}

// sent notes that all posts under way have returned, and puts those in again back into the backlog.
func (b *backlog) sent(again []post, now time.Duration) {
	again = slices.DeleteFunc(again, func(p post) bool { return b.reset[p.id] })
	b.sending, b.reset = nil, nil
	b.putBack(again, now)
}

// putBack puts posts that could not be charged back into the backlog. Those that were tried too
// often are lost.
func (b *backlog) putBack(posts []post, now time.Duration) {
	for _, p := range posts {
		if p.entry.tries > maxTries {
			b.lost++
			continue
		}
		if p.doubt {
			if b.doubtful == nil {
				b.doubtful = make(map[counterID]post)
			}
			if _, ok := b.doubtful[p.id]; ok { // its counter has moved here
				b.lost++
			}
			b.doubtful[p.id] = p
			continue
		}
		d := b.entries[p.id]
		if d == nil {
			if d = p.entry; !b.enter(p.id, d, now) {
				continue
			}
		} else { // more was admitted meanwhile
			d.join(p.entry, b.start)
		}
		b.markUrgent(p.id, d)
	}
}
