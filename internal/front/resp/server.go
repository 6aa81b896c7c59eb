package resp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/strict"
)

// Options of a Server. Every field may be nil or zero, which has the meaning stated there.
type Options struct {
	// Desk answers the TG commands; nil means that there are none.
	Desk *desk.Desk
	// Store keeps the counters of CL.THROTTLE; nil means that there is no such command. It
	// is asked about one check at a time, and nobody waits in a queue: a store without layers
	// for anything else is faster.
	Store tidegate.Store
	// Known reports whether the rules have an identity of that name; nil means all.
	Known func(identity string) bool
	// Paths says what to do with paths that servers may read in several ways, as in the gateway.
	Paths strict.Paths
	// OnStoreFailure says what a store that is a tidegate.LocalFallback does about CL.THROTTLE
	// while its counters cannot be reached; nil means FailLocal. With any other store, the answer
	// is an error.
	OnStoreFailure *tidegate.FailMode
	// Users that may authenticate. If there are none, nobody has to.
	Users []User
	// Version of the program, for HELLO and INFO.
	Version string

	// Observe is called for every decision of CL.THROTTLE, as the observer of Desk's gate is for
	// the others. r is nil, and the rule of all of them is RuleName.
	Observe func(r *tidegate.Request, checks []tidegate.Check, d tidegate.Decision)
	// Counted is called for the same decisions, for metrics: for n at once that ended like d. It
	// must not keep d.
	Counted func(d *tidegate.Decision, n int64)
	// Access is called for every command that has decided, with its last decision, for a log. It
	// must not keep the Access.
	Access func(*Access)
	// Refused is called for every request that was refused without the rules; nil means never.
	Refused func(strict.Refused)
	// Report is called with what should not happen, such as a panic; nil means never.
	Report func(error)

	// Stall is how long a client may take to finish a command, or to take its replies; 30
	// seconds by default.
	Stall time.Duration
	// AuthWithin is how long it may take to authenticate; 10 seconds by default.
	AuthWithin time.Duration
	// Idle is how long a connection may do nothing, or up to a sixteenth less; 0 means for
	// ever.
	Idle time.Duration
	// LargeBytes bounds the input buffers above 16 KiB of all connections together; 64 MiB
	// by default.
	LargeBytes int64
}

// RuleName is the rule of all decisions of CL.THROTTLE.
const RuleName = "cl.throttle"

// Access describes a decision for the access log.
type Access struct {
	Client, User, Command string
	Decision              tidegate.Decision
	Took                  time.Duration
}

// Stats count what a Server has done.
type Stats struct {
	Connections int64 // now
	Accepted    int64
	Commands    int64
	WrongAuth   int64
	Protocol    int64 // connections closed because of what they sent
	Stalled     int64 // connections closed because they stood still
	LargeBytes  int64 // of input buffers above 16 KiB, now
}

// Server speaks RESP. Use [New]. Its methods may be called from any number of goroutines.
type Server struct {
	o        Options
	ctx      context.Context // of all questions to Store and Desk
	end      context.CancelFunc
	one      tidegate.OneTaker // the store, if it has a way for one check
	rates    rates
	accounts atomic.Pointer[accounts]
	started  time.Time

	ids                                              atomic.Int64
	open, accepted, commands, wrong, broken, stalled atomic.Int64
	large                                            atomic.Int64

	mu        sync.Mutex
	draining  atomic.Bool  // changed under mu
	drainBy   atomic.Int64 // Unix time in nanoseconds from which Shutdown waits for no more commands
	conns     map[*conn]struct{}
	listeners map[net.Listener]struct{}
	accepting sync.WaitGroup // calls of Serve
	done      sync.WaitGroup // connections
}

// New returns a Server.
func New(o Options) *Server {
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.AuthWithin = cmp.Or(o.AuthWithin, 10*time.Second)
	o.LargeBytes = cmp.Or(o.LargeBytes, 64<<20)
	o.Version = cmp.Or(o.Version, "unknown")
	s := &Server{o: o, started: time.Now(), conns: map[*conn]struct{}{}, listeners: map[net.Listener]struct{}{}}
	ctx, end := context.WithCancel(context.Background())
	s.ctx, s.end = ctx, end
	s.one, _ = o.Store.(tidegate.OneTaker)
	s.rates.init(tidegate.FailLocal)
	if o.OnStoreFailure != nil {
		s.rates.init(*o.OnStoreFailure)
	}
	s.SetUsers(o.Users)
	return s
}

// SetUsers replaces the users. Connections whose user is gone, or has another password, have
// to authenticate again.
func (s *Server) SetUsers(users []User) { s.accounts.Store(newAccounts(users)) }

// Stats returns what was counted so far.
func (s *Server) Stats() Stats {
	return Stats{
		s.open.Load(), s.accepted.Load(), s.commands.Load(), s.wrong.Load(), s.broken.Load(), s.stalled.Load(), s.large.Load(),
	}
}

// Serve accepts connections until Shutdown or Close, and returns nil then. It closes the
// listener, and takes what that still has: clients whose handshake was under way.
func (s *Server) Serve(l net.Listener) error {
	if !s.listens(l, true) {
		_ = l.Close()
		return nil
	}
	defer s.listens(l, false)
	defer l.Close()
	var pause time.Duration
	for {
		raw, err := l.Accept()
		switch {
		case err != nil && s.draining.Load():
			return nil
		case err != nil && temporary(err): // out of file descriptors, mostly
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
		case err != nil:
			return err
		default:
			pause = 0
			s.accept(raw)
		}
	}
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary() && !errors.Is(err, net.ErrClosed)
}

func (s *Server) listens(l net.Listener, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !on {
		delete(s.listeners, l)
		s.accepting.Done()
	} else if !s.draining.Load() {
		s.listeners[l] = struct{}{}
		s.accepting.Add(1)
		return true
	}
	return false
}

func (s *Server) accept(raw net.Conn) {
	c := newConn(s, raw)
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		_ = raw.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.done.Add(1)
	s.mu.Unlock()
	s.accepted.Add(1)
	s.open.Add(1)
	go c.serve()
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.open.Add(-1)
	s.done.Done()
}

// Times of Shutdown: how long a connection may be quiet before it is closed, how long one that
// has not sent a command yet, and after how long each is closed after its next answer. The
// protocol has no word to tell a client to leave. A client that asks meanwhile is answered, and
// most see the connection end between two commands.
const (
	quietAtEnd    = 200 * time.Millisecond
	newcomerAtEnd = time.Second
	graceAtEnd    = 5 * time.Second
)

// Shutdown stops listening and closes each connection once it is quiet, or after a few
// seconds between two answers. It returns when all are closed. If ctx ends before, it closes
// them and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	now := time.Now()
	s.drainBy.Store(now.Add(graceAtEnd).UnixNano())
	s.drain(func(c *conn) { _ = c.net.SetReadDeadline(now.Add(c.quiet())) })
	accepted, closed := make(chan struct{}), make(chan struct{})
	go func() {
		s.accepting.Wait()
		close(accepted)
	}()
	go func() {
		select {
		case <-accepted:
		case <-time.After(graceAtEnd): // whoever comes later is closed at once
		}
		s.done.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		s.end()
		return nil
	case <-ctx.Done():
		_ = s.Close()
		return ctx.Err()
	}
}

// Close closes all listeners and connections at once, and returns when their goroutines
// have ended.
func (s *Server) Close() error {
	s.end()
	s.drain(func(c *conn) { _ = c.net.Close() })
	s.done.Wait()
	return nil
}

func (s *Server) drain(each func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		each(c)
	}
}

func (s *Server) report(err error) {
	if s.o.Report != nil {
		s.o.Report(err)
	}
}
