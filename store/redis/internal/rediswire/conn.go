// Package rediswire sits between a Redis client and its connection. A client that pipelines
// takes replies in the order of its commands, and trusts the server: an unrequested reply, an
// announced length of a terabyte or a reply of an odd shape can end the process, on a
// goroutine where nobody recovers. [Conn] reads along in both directions and turns invalid
// data into an error of that one connection, before the client sees it.
//
// It checks the frame, the order and the shape of replies. The caller of a script checks the
// numbers in its reply.
//
// Start with [Wrap].
package rediswire

import (
	"errors"
	"net"
	"os"
	"sync"
)

// Conn is a connection to a Redis server whose replies are checked. One goroutine may
// read while another one writes.
type Conn struct {
	net.Conn
	report func(error) // may be nil

	in     reader // of the reading goroutine
	well   bool   // of the reading goroutine: report was told that the server answers
	failed error  // of the reading goroutine: why the connection was closed; final

	out    writer // of the writing goroutine
	mu     sync.Mutex
	wanted queue // under mu: replies to commands that were sent
	resp3  bool  // under mu: HELLO 3 was sent
	pubsub bool  // under mu: a command about subscriptions was sent
}

// Wrap returns c with its replies checked. Nothing may have been sent or read before.
// report, if not nil, is told by the reading goroutine why the server cannot be used, if it
// says so or breaks the protocol, and nil when it answers what is asked.
func Wrap(c net.Conn, report func(error)) *Conn { return &Conn{Conn: c, report: report} }

func (c *Conn) tell(err error) {
	if c.report != nil {
		c.report(err)
	}
}

// Write implements [net.Conn]. What it sends must be commands as Redis' protocol frames
// them, in pieces of any size.
func (c *Conn) Write(b []byte) (int, error) {
	// Noted before it is sent: the reply may be read before Write returns.
	if err := c.out.scan(b, c.sent); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// sent notes what is to come back for a command.
func (c *Conn) sent(cmd *command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := cmd.want()
	switch w.kind {
	case hello:
		c.resp3 = c.resp3 || cmd.proto3()
	case subscribe, unsubscribe:
		c.pubsub = true
	}
	c.wanted.push(w)
}

// Read implements [net.Conn]. It returns whole messages that are valid, and beginnings of
// messages that are valid so far, on which a client does not act yet.
func (c *Conn) Read(b []byte) (int, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	n, err := c.Conn.Read(b)
	if good, bad := c.check(b[:n]); bad != nil {
		c.failed = bad
		c.tell(bad)
		_ = c.Conn.Close()
		return good, bad
	}
	if err != nil && !c.in.seen && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		c.tell(ErrHungUp)
		if c.asked() {
			err = Unwelcome{err}
		}
	}
	return n, err
}

// asked reports whether a reply is still to come.
func (c *Conn) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted.first() != nil
}

// check reads along. If b has something invalid, it returns an error, and where the last valid message
// before that ends.
func (c *Conn) check(b []byte) (good int, err error) {
	for at := 0; at < len(b); {
		if c.in.between() {
			if err := c.begin(b[at:]); err != nil {
				return good, err
			}
		}
		n, whole, err := c.in.scan(b[at:])
		if err != nil {
			return good, c.diagnose(err, b[at:])
		}
		at += n
		if !whole {
			break
		}
		if err := c.finish(); err != nil {
			return good, err
		}
		good = at
	}
	return good, nil
}

// begin prepares the reader for the next message, which begins with b. It returns an error if no message
// was to come.
func (c *Conn) begin(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, typ := c.wanted.first(), b[0]
	// In the old protocol whatever is an array is pushed, once subscriptions are about.
	pushed := typ == '>' || typ == '*' && c.pubsub && !c.resp3 && (next == nil || next.kind != hello)
	switch {
	case pushed:
		c.in.begin(limits{elements: 64, bytes: maxPush, inspect: maxPush})
	case next == nil:
		return c.surplus(b)
	default:
		c.in.begin(next.limits(typ))
	}
	c.in.pushed = pushed
	return nil
}

// finish reports what is wrong with a message that is whole, and takes what it answers off the list.
func (c *Conn) finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.seen = true
	if c.in.pushed {
		return c.pushedLocked()
	}
	next := c.wanted.first()
	if err := next.accept(c.in.kept); err != nil {
		return err
	}
	c.noteReply(next.kind)
	return c.answeredLocked(next)
}

// noteReply reports what a reply says about the server.
func (c *Conn) noteReply(k kind) {
	failed := c.in.kept[0] == '-'
	switch k {
	case hello, status:
		if failed {
			it, _ := parse(c.in.kept)
			c.tell(ServerError(it.text))
		}
	case word, pong: // which clients also ask servers that do not let them in
	default:
		if !failed && !c.well {
			c.well = true
			c.tell(nil)
		}
	}
}
