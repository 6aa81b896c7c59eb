package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"
)

// straight sends requests over HTTP/1.1 on the goroutine that has them. Package
// http has two goroutines for every connection, so that a request may be answered
// while its body is still being sent; one that has no body does not need them, and
// waking them up and being woken up takes longer than anything else in a gateway.
// What it does not take is for a http.Transport; see takes.
//
// A connection that is idle is looked at before it is used again: one that was
// closed, or on which something came that nobody asked for, is not used.
type straight struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	address string
	wait    time.Duration // for the head of an answer; 0: for ever
	keep    time.Duration // how long a connection may be idle; 0: for ever
	most    int           // how many may be

	mu     sync.Mutex
	idle   []*link     // under mu; the one used last is the last
	expiry *time.Timer // under mu; nil: none has been idle yet
	shut   bool        // under mu: none is kept until somebody asks again
}

// takes reports whether r is for straight: a request that is over when it is sent.
func (s *straight) takes(r *http.Request) bool {
	if s == nil || r.Body != nil && r.Body != http.NoBody || r.ContentLength > 0 || len(r.Trailer) > 0 {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	return len(r.Header["Upgrade"]) == 0 && len(r.Header["Expect"]) == 0
}

// RoundTrip implements http.RoundTripper.
func (s *straight) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	for used := s.take(); used != nil; used = s.take() {
		if !used.silent() || s.outdated(used) {
			_ = used.Close()
			continue
		}
		res, err := s.ask(ctx, used, r)
		if err == nil || used.asked || used.heard || ctx.Err() != nil || isTimeout(err) {
			return res, err
		}
		// It was closed at this very moment, before anything of the request was sent, and
		// the others may have been, too.
		s.closeIdle()
		break
	}
	conn, err := s.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	return s.ask(ctx, newLink(conn), r)
}

// ask has r answered over l, which ends with the request if that is broken off.
func (s *straight) ask(ctx context.Context, l *link, r *http.Request) (*http.Response, error) {
	unwatch := context.AfterFunc(ctx, func() { _ = l.Close() })
	l.arm(s.wait)
	res, err := l.roundTrip(r, informer(ctx))
	if err != nil {
		unwatch()
		_ = l.Close()
		if x := exchangeOf(ctx); x != nil && l.asked {
			x.reached.Store(true)
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	b := &straightBody{from: res.Body, link: l, owner: s, unwatch: unwatch, ctx: ctx, last: res.Close}
	if res.Body == http.NoBody {
		b.end(io.EOF)
		return res, nil
	}
	if res.ContentLength < 0 || int64(l.in.Buffered()) < res.ContentLength {
		l.disarm() // the body may take its time
	}
	res.Body = b
	return res, nil
}

// informer is who wants to know of answers that are not the last; nil: nobody.
func informer(ctx context.Context) func(int, textproto.MIMEHeader) error {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		return trace.Got1xxResponse
	}
	return nil
}

// take is the connection that was used last, or nil.
func (s *straight) take() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = false
	last := len(s.idle) - 1
	if last < 0 {
		return nil
	}
	l := s.idle[last]
	s.idle[last] = nil
	s.idle = s.idle[:last]
	return l
}

// put keeps a connection for the next request.
func (s *straight) put(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || len(s.idle) >= s.most {
		_ = l.Close()
		return
	}
	l.since = time.Now()
	s.idle = append(s.idle, l)
	if len(s.idle) == 1 && s.keep > 0 {
		s.expireIn(s.keep)
	}
}

// outdated reports whether l has been idle for too long by the clock on the wall,
// which goes on where a machine is suspended; the timer does not.
func (s *straight) outdated(l *link) bool {
	return s.keep > 0 && time.Since(l.since.Round(0)) > s.keep
}

func (s *straight) expireIn(d time.Duration) {
	if s.expiry == nil {
		s.expiry = time.AfterFunc(d, s.expire)
	} else {
		s.expiry.Reset(d)
	}
}

// expire closes what has been idle for too long. The timer is set while there is
// something idle.
func (s *straight) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(s.idle) && now.Sub(s.idle[old].since) >= s.keep {
		_ = s.idle[old].Close()
		old++
	}
	s.idle = append(s.idle[:0:0], s.idle[old:]...)
	if len(s.idle) > 0 {
		s.expireIn(s.keep - now.Sub(s.idle[0].since))
	}
}

// CloseIdleConnections is as that of http.Transport: what becomes idle before
// somebody asks again is closed, too.
func (s *straight) CloseIdleConnections() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.closeIdle()
}

func (s *straight) closeIdle() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.mu.Unlock()
	for _, l := range idle {
		_ = l.Close()
	}
}
