package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// An upstream that does not answer at once has its time, and from then on the client is watched.
func TestDirectWatchesLate(t *testing.T) {
	f := func(name string, headTimeout time.Duration, then func(leave func(), peer *net.TCPConn), want error) {
		t.Run(name, func(t *testing.T) {
			conn, peer := connected(t)
			c := newUpstreamConn(conn)
			defer c.Close()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			c.headLeft = maxResponseHead
			c.begin(ctx, time.Now(), headTimeout)
			if c.stopWatch != nil {
				t.Fatal("the client is watched from the start")
			}
			_ = conn.SetDeadline(time.Now().Add(-time.Second)) // as if it had passed
			if _, err := c.Write([]byte("GET")); err != nil {
				t.Fatal(err)
			}
			then(leave, peer)
			if _, err := c.Read(make([]byte, 10)); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if c.stopWatch == nil {
				t.Error("the client is not watched")
			}
			if open := c.end(); open != (want == nil) {
				t.Errorf("open: %v", open)
			}
		})
	}
	f("an answer", 0, func(_ func(), peer *net.TCPConn) { _, _ = io.WriteString(peer, "HTTP") }, nil)
	f("an answer in time", time.Minute, func(_ func(), peer *net.TCPConn) { _, _ = io.WriteString(peer, "HTTP") }, nil)
	f("the client leaves", time.Minute, func(leave func(), _ *net.TCPConn) { leave() }, net.ErrClosed)
}

// A deadline is not set for every request, and never one that is too far away.
func TestDirectSetsDeadlinesSeldom(t *testing.T) {
	conn, _ := connected(t)
	c := newUpstreamConn(conn)
	defer c.Close()
	now := time.Now()
	f := func(after, headTimeout, want time.Duration) {
		t.Helper()
		c.begin(t.Context(), now.Add(after), headTimeout)
		if got := c.deadline.Sub(now); got != want {
			t.Errorf("the deadline is after %s, want %s", got, want)
		}
		c.end()
	}
	soon := mostUnwatched - leastUnwatched
	f(0, time.Minute, mostUnwatched)
	f(soon, time.Minute, mostUnwatched)
	f(soon+1, time.Minute, soon+1+mostUnwatched)
	f(time.Second, time.Millisecond, time.Second+time.Millisecond)
	f(time.Second, 0, time.Second+mostUnwatched)
	c.begin(t.Context(), now, 0)
	c.beginBody()
	if !c.deadline.IsZero() || c.stopWatch == nil {
		t.Error("a body has a deadline, or nobody watches its client")
	}
	c.end()
}
