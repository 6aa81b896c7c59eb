package rlqs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// Server assigns parts of limits to proxies. Use [New]. It is safe for concurrent use.
type Server struct {
	pb.UnimplementedRateLimitQuotaServiceServer
	o     Options
	began time.Time

	mu       sync.Mutex
	streams  map[*stream]struct{}
	accounts map[string]*account // by their names
	subs     int                 // number of subscriptions of all streams
	lastNode ledger.Node
	unfit    map[string]bool // rules that logUnfit has logged

	counts  counts
	waiting waiting
	closing chan struct{}
	close   sync.Once
	ended   chan struct{} // closed at the end of run
}

// counts are for [Server.Stats].
type counts struct{ changed, extended, denied, refused, late atomic.Uint64 }

// New returns a Server. It runs until Close.
func New(o Options) *Server {
	o.complete()
	s := &Server{
		o: o, began: time.Now(),
		streams: make(map[*stream]struct{}), accounts: make(map[string]*account), unfit: make(map[string]bool),
		closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go s.run()
	return s
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { pb.RegisterRateLimitQuotaServiceServer(r, s) }

// Close ends all streams, and the renewal of assignments.
func (s *Server) Close() error {
	s.close.Do(func() { close(s.closing) })
	<-s.ended
	return nil
}

// Stats are numbers for operators.
type Stats struct {
	Streams, Buckets, Counters int
	// Changed, Extended and Denied are assignments of limits that are divided.
	Changed, Extended, Denied uint64
	// Refused are reports of buckets above a bound. Late are assignments that were not sent
	// because the proxy read too slowly.
	Refused, Late uint64
}

// Stats returns what they are now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.counts
	return Stats{
		Streams: len(s.streams), Buckets: s.subs, Counters: len(s.accounts),
		Changed: c.changed.Load(), Extended: c.extended.Load(), Denied: c.denied.Load(),
		Refused: c.refused.Load(), Late: c.late.Load(),
	}
}

// now returns the time by which ledgers count: since the Server was made.
func (s *Server) now() time.Duration { return time.Since(s.began) }

// open adds a stream, unless there are too many.
func (s *Server) open(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) >= MaxStreams {
		return false
	}
	s.streams[st] = struct{}{}
	return true
}

// end removes a stream. Its assignments stay outstanding.
func (s *Server) end(st *stream) {
	s.mu.Lock()
	st.closed = true
	delete(s.streams, st)
	subs := make([]*subscription, 0, len(st.subs))
	for _, sub := range st.subs {
		subs = append(subs, sub)
	}
	s.mu.Unlock()
	for _, sub := range subs {
		s.unsubscribe(sub)
	}
	st.outbox.close()
}

// subscribed returns the subscription of a bucket, nil if there is none.
func (s *Server) subscribed(st *stream, name string) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.subs[name]
}

// subscribe adds a bucket to a stream and sends its first assignment. It returns nil if there are
// too many buckets or accounts, or the stream has ended.
func (s *Server) subscribe(st *stream, name string, id *pb.BucketId, is subject) *subscription {
	now := s.now()
	sub := &subscription{stream: st, name: name, id: id, heard: now, active: now}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	s.mu.Lock()
	full := st.closed || len(st.subs) >= MaxBuckets || s.subs >= MaxSubscriptions
	if full || is.assigned == limited && !s.accountLocked(&is) {
		s.mu.Unlock()
		return nil
	}
	s.lastNode++
	sub.node = s.lastNode
	st.subs[name] = sub
	s.subs++
	s.mu.Unlock()
	s.hold(sub, is)
	return sub
}

// unsubscribe removes a bucket from its stream. Its assignments stay outstanding.
func (s *Server) unsubscribe(sub *subscription) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	s.mu.Lock()
	if sub.stream.subs[sub.name] != sub {
		s.mu.Unlock()
		return
	}
	delete(sub.stream.subs, sub.name)
	s.subs--
	was := sub.account
	sub.account = nil
	s.mu.Unlock()
	s.leave(was, sub)
}

// accountLocked reports whether a limited subject has an account, or there is room for one.
func (s *Server) accountLocked(is *subject) bool {
	return s.accounts[nameOf(is)] != nil || len(s.accounts) < MaxAccounts
}

// hold sets the subject of a subscription and sends its assignment. If there is no room for another
// account, the bucket is denied. sub.mu is locked.
func (s *Server) hold(sub *subscription, is subject) {
	now := s.now()
	s.mu.Lock()
	was := sub.account
	if is.assigned == limited && !s.accountLocked(&is) {
		is.assigned = denied
	}
	sub.subject, sub.found, sub.account = is, now, nil
	if is.assigned == limited {
		a := s.accounts[nameOf(&is)]
		if a == nil {
			a = s.newAccount(&is, now)
			s.accounts[a.name] = a
		}
		if a != was {
			a.refs++
		}
		sub.account = a
	} else {
		s.sendBlanketLocked(sub, now)
	}
	a := sub.account
	s.mu.Unlock()
	if was != a {
		s.leave(was, sub)
	}
	if a != nil {
		a.join(sub, &is, now)
		s.settle(a)
	}
	if is.assigned == unfit {
		s.logUnfit(&is)
	}
}

// leave removes a subscription from an account, if it has one.
func (s *Server) leave(a *account, sub *subscription) {
	if a == nil {
		return
	}
	a.leave(sub, s.now())
	sub.stream.outbox.forget(sub.name)
	s.mu.Lock()
	a.refs--
	s.mu.Unlock()
}

// sendBlanketLocked sends the assignment of a bucket that has no part of a limit.
func (s *Server) sendBlanketLocked(sub *subscription, now time.Duration) {
	u := update{action: assign(sub.id, denyAll, s.o.Times.TTL), at: now}
	if sub.subject.assigned == allowed {
		u.action, u.kind = assign(sub.id, allowAll, s.o.Times.TTL), soon
	}
	sub.next = now + s.o.Times.Renewal()
	sub.send(u)
}

// refind looks up again what a bucket is held to, and sends another assignment if that has changed.
func (s *Server) refind(ctx context.Context, sub *subscription) {
	entries, _, _ := entriesOf(sub.id.GetBucket())
	is := s.find(ctx, sub.stream.domain, entries)
	sub.mu.Lock()
	defer sub.mu.Unlock()
	s.mu.Lock()
	there, same := sub.stream.subs[sub.name] == sub, sub.subject.equal(&is)
	sub.found, sub.subject.rules = s.now(), is.rules
	s.mu.Unlock()
	if there && !same {
		s.hold(sub, is)
	}
}
