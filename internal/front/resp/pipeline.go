package resp

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// maxPending is how many commands of one connection are put to a store at a time.
const maxPending = 64

// pending is a CL.THROTTLE that is put to the store together with those behind it. That is for
// stores that are far away: one by one, each would wait for a round trip of its own.
type pending struct {
	rate   *rate
	checks [1]tidegate.Check
	d      tidegate.Decision
	err    error
	first  bool // of its key
	next   int  // the next of the same key; 0 means none
}

// later leaves a command for settlePending. It copies the key, whose memory the next command
// uses.
func (c *conn) later(key string, r *rate, cost int64) {
	p := pending{rate: r, first: true}
	p.checks[0] = tidegate.Check{Key: strings.Clone(key), Limit: r.limit, Cost: cost}
	for i := len(c.pending) - 1; i >= 0; i-- {
		if c.pending[i].checks[0].Key == key { // they are decided in order
			c.pending[i].next, p.first = len(c.pending), false
			break
		}
	}
	if c.pending = append(c.pending, p); len(c.pending) == maxPending {
		c.settlePending()
	}
}

// settlePending answers the commands that were left for later, in their order. It is called
// before anything else is answered.
func (c *conn) settlePending() {
	if len(c.pending) == 0 {
		return
	}
	start := time.Now()
	var all sync.WaitGroup
	for i := range c.pending {
		if !c.pending[i].first {
			continue
		}
		if i == len(c.pending)-1 { // this goroutine would only wait
			c.takeInOrder(i)
		} else {
			all.Go(func() { c.takeInOrder(i) })
		}
	}
	all.Wait()
	for i := range c.pending {
		p := &c.pending[i]
		if p.err == nil && c.srv.o.Counted != nil {
			c.noted(&p.d)
		}
		c.throttled(p.rate, &p.d, p.err)
		if c.srv.o.Access != nil && p.err == nil {
			c.access.Decision = p.d
			c.log("cl.throttle", start)
		}
	}
	clear(c.pending)
	c.pending = c.pending[:0]
}

// takeInOrder asks the store for a command and those behind it about the same key.
func (c *conn) takeInOrder(i int) {
	defer func() { // as in serve, which does not see this goroutine
		if v := recover(); v != nil {
			for more := true; more; more = i != 0 { // those behind it are not asked about either
				c.pending[i].err = fmt.Errorf("panic: %v", v)
				i = c.pending[i].next
			}
			c.srv.report(fmt.Errorf("resp: panic in CL.THROTTLE: %v\n%s", v, debug.Stack()))
		}
	}()
	for {
		p := &c.pending[i]
		p.d, p.err = c.srv.o.Store.Take(c.srv.ctx, p.checks[:], 1)
		if p.err == nil && c.srv.o.Observe != nil {
			c.srv.o.Observe(nil, p.checks[:], p.d)
		}
		if i = p.next; i == 0 {
			return
		}
	}
}
