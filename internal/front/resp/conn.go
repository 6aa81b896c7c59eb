package resp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// conn is a connection. All of it belongs to the goroutine that serves it.
type conn struct {
	reply
	srv *Server
	net net.Conn
	in  reader

	id       int64
	since    time.Time
	stranger time.Time // since when it has to authenticate, if it does
	name     string
	lib      [2]string // name and version
	accounts *accounts // among which account was found
	account  *account  // nil means nobody
	wrong    int       // how many passwords were wrong

	last   *command      // the command before: the next is mostly the same, and not looked up
	named  [maxName]byte // how its name was written
	length int           // of named
	key    []byte        // the key that is asked about
	rate   *rate         // that was asked about last
	checks [1]tidegate.Check
	access Access
	asked  asked // the request of a TG command

	pending  []pending
	run      run
	hasAsked atomic.Bool // it has sent a command
	commands int64       // since the server was last told
	closing  bool        // nothing more is read
	awaits   awaited     // what the deadline for reading is for
	filled   bool        // the last read filled the buffer
	calm     int         // reads in a row that needed only a small buffer
	large    int64       // bytes of the server's LargeBytes that the buffer takes
	replied  time.Time   // when replies were last sent
	readBy   time.Time   // the deadline for reading, if there is one
	writeBy  time.Time   // the deadline for writing
}

func newConn(s *Server, raw net.Conn) *conn {
	c := &conn{srv: s, net: raw, id: s.ids.Add(1), since: time.Now(), accounts: s.accounts.Load()}
	c.resp, c.stranger = 2, c.since
	c.in.buf = make([]byte, smallBuffer)
	c.access.Client = raw.RemoteAddr().String()
	return c
}

// serve answers until the client leaves, or has to.
func (c *conn) serve() {
	defer c.srv.leave(c)
	defer func() { _ = c.net.Close() }()
	defer c.shrink(0)
	defer func() {
		if v := recover(); v != nil {
			c.srv.report(fmt.Errorf("resp: panic while serving %s: %v\n%s", c.access.Client, v, debug.Stack()))
		}
	}()
	progress := true
	for c.arm(progress) && c.read() {
		var err error
		progress, err = c.batch()
		yields := c.commands <= fewCommands && c.srv.open.Load() > 1
		c.count()
		if err != nil {
			c.refuse(err)
		}
		if !c.flush() {
			return
		}
		if c.closing {
			c.linger()
			return
		}
		c.forget()
		if yields {
			runtime.Gosched()
		}
	}
	if c.closing || c.srv.draining.Load() {
		c.linger()
	}
}

// fewCommands is the largest batch after which a connection lets the others go first before
// it reads again. Its client's next command is mostly not there yet, and a read that finds
// nothing, with the wake-up after it, costs more than a yield.
const fewCommands = 4

// batch answers all commands that were received whole, and reports whether there were any.
func (c *conn) batch() (some bool, err error) {
	c.enter()
	defer c.settlePending()
	for !c.closing {
		args, err := c.in.next(c.bounds())
		if len(args) == 0 || err != nil {
			return some, err
		}
		some = true
		c.commands++
		c.execute(args)
		if len(c.out) >= flushAt && !c.flush() {
			return some, net.ErrClosed
		}
	}
	return some, nil
}

// keptArgs is for how many arguments memory is kept.
const keptArgs = 64

// forget lets go of what only the last commands needed: the connection may be idle for long.
func (c *conn) forget() {
	if p := &c.in; cap(p.ends) > keptArgs && p.left == 0 {
		p.ends, p.args = nil, nil
	}
	if c.asked.used {
		c.asked.reset()
	}
	c.pending = nil
}

// count adds the commands of a batch to those of the server, and has their decisions counted.
func (c *conn) count() {
	c.tellRun()
	c.srv.commands.Add(c.commands)
	if c.commands > 0 && !c.hasAsked.Load() {
		c.hasAsked.Store(true)
	}
	c.commands = 0
}

// enter takes over the accounts of the server if they have changed.
func (c *conn) enter() {
	if now := c.srv.accounts.Load(); now != c.accounts {
		was := c.anonymous()
		c.account = now.still(c.account)
		c.accounts = now
		c.startAuthTime(was)
	}
}

// startAuthTime starts the time that a client has to authenticate, if it has to now. was means that it
// had to before: then it gets no more time.
func (c *conn) startAuthTime(was bool) {
	if !was && c.anonymous() {
		c.stranger = time.Now()
	}
}

// anonymous reports whether the client has to authenticate first.
func (c *conn) anonymous() bool { return c.account == nil && !c.accounts.open() }

func (c *conn) bounds() *bounds {
	if c.anonymous() {
		return &unknown
	}
	return &known
}

// refuse answers what cannot be parsed, and has the connection closed.
func (c *conn) refuse(err error) {
	c.closing = true
	if errors.Is(err, net.ErrClosed) {
		return
	}
	c.srv.broken.Add(1)
	if err != errHTTP {
		c.error("ERR " + err.Error())
	}
}

// quiet returns how long the connection may be quiet while the server shuts down. It may be
// called by another goroutine.
func (c *conn) quiet() time.Duration {
	if c.hasAsked.Load() {
		return quietAtEnd
	}
	return newcomerAtEnd
}

// armAtEnd is arm while the server shuts down. It reports false when it is time to leave.
func (c *conn) armAtEnd() bool {
	now := time.Now()
	by := now.Add(c.quiet())
	if last := time.Unix(0, c.srv.drainBy.Load()); by.After(last) {
		by = last
	}
	_ = c.net.SetReadDeadline(by)
	return by.After(now)
}

// awaited is what a client has until a deadline to do.
type awaited uint8

const (
	nothing awaited = iota // there is no deadline
	authentication
	restOfCommand
	anything
)

// arm sets the deadline of the next read. progress means that a command was complete since
// it was last set. It reports false when it is time to leave.
func (c *conn) arm(progress bool) bool {
	if c.srv.draining.Load() {
		return c.armAtEnd()
	}
	var by time.Time
	var what awaited
	switch {
	case c.anonymous():
		by, what = c.stranger.Add(c.srv.o.AuthWithin), authentication
	case c.in.partial() && !progress && c.awaits == restOfCommand:
		return true
	case c.in.partial():
		by, what = time.Now().Add(c.srv.o.Stall), restOfCommand
	case c.srv.o.Idle > 0:
		now, idle := c.replied, c.srv.o.Idle
		if now.IsZero() {
			now = time.Now()
		}
		if c.awaits == anything && c.readBy.Sub(now) > idle-idle/16 { // set seldom, as it costs as much as a decision
			return !c.srv.draining.Load() || c.armAtEnd()
		}
		by, what = now.Add(idle), anything
	case c.awaits == nothing:
		return !c.srv.draining.Load() || c.armAtEnd()
	}
	_ = c.net.SetReadDeadline(by)
	c.awaits, c.readBy = what, by
	return !c.srv.draining.Load() || c.armAtEnd() // it may have begun before the deadline was set
}

// read reads once. It reports false when there is nothing more to come.
func (c *conn) read() bool {
	p := &c.in
	if p.r > 0 {
		copy(p.buf, p.buf[p.r:p.w])
		p.r, p.w = 0, p.w-p.r
	}
	if !c.room() {
		return false
	}
	n, err := c.net.Read(p.buf[p.w:])
	p.w += n
	c.filled = p.w == len(p.buf)
	if n > smallBuffer/2 {
		c.calm = 0
	}
	if n > 0 {
		return true
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.srv.draining.Load() {
		c.srv.stalled.Add(1)
	}
	return false
}

// room makes the buffer larger when it was full, and smaller when it need not be so large. It
// reports false when there is no memory for a larger one; see grow.
func (c *conn) room() bool {
	p := &c.in
	size := len(p.buf)
	switch {
	case p.w == size: // a command that is longer
		return c.grow(min(2*size, max(MaxCommand, size)+smallBuffer))
	case size < pipeBuffer && c.filled && !c.anonymous(): // many commands at once
		return c.grow(pipeBuffer)
	case size > pipeBuffer && p.w < pipeBuffer/2:
		c.shrink(pipeBuffer)
	case size > smallBuffer && p.w == 0:
		if c.calm++; c.calm > 64 {
			c.shrink(smallBuffer)
		}
	}
	return true
}

// grow makes the buffer larger. If the large buffers of all connections exceed LargeBytes, it
// answers with an error, has the connection closed and reports false.
func (c *conn) grow(size int) bool {
	if size > pipeBuffer {
		more := int64(size-pipeBuffer) - c.large
		if c.srv.large.Add(more) > c.srv.o.LargeBytes {
			c.srv.large.Add(-more)
			c.error("ERR too many large commands at once, try again later")
			c.flush()
			c.closing = true
			c.shrink(0)
			c.in = reader{} // nothing is held until the client has noticed
			return false
		}
		c.large += more
	}
	c.resize(size)
	return true
}

// shrink gives back what the buffer takes of LargeBytes, and makes it smaller; size 0 means that
// it is not needed any more.
func (c *conn) shrink(size int) {
	c.srv.large.Add(-c.large)
	c.large = 0
	if size > 0 {
		c.resize(size)
	}
}

func (c *conn) resize(size int) {
	buf := make([]byte, size)
	copy(buf, c.in.buf[:c.in.w])
	c.in.buf, c.calm = buf, 0
}

// flush writes what has gathered. It reports false when the client does not take it.
func (c *conn) flush() bool {
	if len(c.out) == 0 {
		return true
	}
	now := time.Now()
	c.replied = now
	if stall := c.srv.o.Stall; c.writeBy.Sub(now) < stall*3/4 { // set seldom, as it costs as much as a decision
		c.writeBy = now.Add(stall)
		_ = c.net.SetWriteDeadline(c.writeBy)
	}
	_, err := c.net.Write(c.out)
	if cap(c.out) > pipeBuffer {
		c.out = nil
	}
	c.out = c.out[:0]
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.srv.stalled.Add(1)
	}
	if err != nil {
		c.closing = true
	}
	return err == nil
}

// lingerFor is how long a client may take to notice that it was answered for the last time.
const lingerFor = 500 * time.Millisecond

// linger closes the connection for writing and reads on for a while, so that the last
// answer is not lost to a reset.
func (c *conn) linger() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.net.SetReadDeadline(time.Now().Add(lingerFor))
	_, _ = io.CopyN(io.Discard, c.net, 1<<20)
}
