package rlqs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// stream is the stream of one proxy.
type stream struct {
	domain string                   // as in its first message; "" before that
	subs   map[string]*subscription // by the names of bucket ids; under Server.mu
	closed bool                     // under Server.mu
	outbox *outbox
}

// subscription is a bucket of a stream: a node of the account that it belongs to.
type subscription struct {
	stream *stream
	name   string
	id     *pb.BucketId
	node   ledger.Node
	mu     sync.Mutex // held while it joins and leaves accounts; before Server.mu

	// Under Server.mu.
	subject subject
	account *account      // nil unless it is limited
	found   time.Duration // when the rules were last looked up
	heard   time.Duration // when it was last reported
	active  time.Duration // when a request was last reported
	next    time.Duration // when a blanket assignment is due
}

func (s *subscription) send(u update) { s.stream.outbox.put(s.name, u) }

// StreamRateLimitQuotas implements the service.
func (s *Server) StreamRateLimitQuotas(ss grpc.BidiStreamingServer[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]) error {
	st := &stream{subs: make(map[string]*subscription), outbox: newOutbox(&s.waiting)}
	if !s.open(st) {
		return status.Error(codes.ResourceExhausted, "too many streams are open")
	}
	defer s.end(st)
	done := make(chan error, 1)
	go func() { done <- s.receive(st, ss) }()
	for {
		select {
		case err := <-done:
			return err
		case <-s.closing:
			return status.Error(codes.Unavailable, "this server is about to end")
		case <-st.outbox.wake:
			if err := s.send(st, ss); err != nil {
				return err
			}
		}
	}
}

// receive reads reports until the stream ends.
func (s *Server) receive(st *stream, ss grpc.BidiStreamingServer[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.o.Log.Error("a panic while a report was read", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	for {
		in, err := ss.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := s.reported(ss.Context(), st, in); err != nil {
			return err
		}
	}
}

// send empties the outbox. Updates that waited too long are left out.
func (s *Server) send(st *stream, ss grpc.BidiStreamingServer[pb.RateLimitQuotaUsageReports, pb.RateLimitQuotaResponse]) error {
	for {
		select {
		case <-s.closing:
			return nil // the caller sees it as well
		default:
		}
		m, lost := st.outbox.take(s.now(), s.o.Times)
		s.lost(st, lost)
		if m == nil {
			return nil
		}
		if err := ss.Send(m); err != nil {
			return err
		}
	}
}

// lost counts updates that were not sent, and tells the ledgers of their buckets.
func (s *Server) lost(st *stream, names []string) {
	s.counts.late.Add(uint64(len(names)))
	for _, name := range names {
		s.mu.Lock()
		sub := st.subs[name]
		var a *account
		if sub != nil {
			a = sub.account
		}
		s.mu.Unlock()
		if a != nil {
			a.lost(sub, s.now())
		}
	}
}

// reported handles a message of reports. Buckets that are new or above a bound get an assignment.
func (s *Server) reported(ctx context.Context, st *stream, in *pb.RateLimitQuotaUsageReports) error {
	if err := check(in, st.domain); err != nil {
		return err
	}
	if st.domain == "" {
		st.domain = in.GetDomain()
	}
	for _, u := range in.GetBucketQuotaUsages() {
		entries, name, fits := entriesOf(u.GetBucketId().GetBucket())
		var sub *subscription
		if fits {
			if sub = s.subscribed(st, name); sub == nil {
				sub = s.subscribe(st, name, u.GetBucketId(), s.find(ctx, st.domain, entries))
			}
		}
		if sub == nil {
			s.counts.refused.Add(1)
			st.outbox.refuse(assign(u.GetBucketId(), denyAll, s.o.Times.TTL))
			continue
		}
		s.used(sub, u.GetNumRequestsAllowed(), u.GetNumRequestsDenied())
	}
	return nil
}

// used counts the requests of a report.
func (s *Server) used(sub *subscription, allowed, denied uint64) {
	now := s.now()
	n := requests(allowed, denied)
	s.mu.Lock()
	sub.heard = now
	if n > 0 {
		sub.active = now
	}
	a, limit := sub.account, sub.subject.limit
	s.mu.Unlock()
	if a != nil {
		a.report(sub, n, now)
	}
	if s.o.Counted == nil || limit == nil {
		return
	}
	ahead := tidegate.Receipt{Origin: tidegate.OriginLeased}
	if allowed > 0 {
		s.o.Counted(&tidegate.Decision{OK: true, Granted: 1, Limit: limit, Receipt: ahead}, int64(min(allowed, maxReported)))
	}
	if denied > 0 {
		s.o.Counted(&tidegate.Decision{Limit: limit, Receipt: ahead}, int64(min(denied, maxReported)))
	}
}
