package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	workers = 8
	base    = 40 * time.Millisecond // that a worker takes for a request when nobody else is there
	crowd   = 50                    // so many more requests make it take twice as long
)

// capacity is how many requests a second the upstream can answer when it is not overloaded.
const capacity = float64(workers) * float64(time.Second) / float64(base)

// upstream slows down with its load, like a server whose requests wait for the same locks, caches and
// disks. Requests wait for a worker, unless their clients leave; what a worker has begun it ends.
type upstream struct {
	free     chan struct{} // a worker each
	inflight atomic.Int64
}

// startUpstream serves on a port of its own until ctx ends, and returns its address.
func startUpstream(ctx context.Context) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	u := &upstream{free: make(chan struct{}, workers)}
	server := &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return l.Addr().String(), nil
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := u.inflight.Add(1)
	defer u.inflight.Add(-1)
	select {
	case u.free <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-u.free }()
	time.Sleep(base + base*time.Duration(n)/crowd)
	_, _ = w.Write([]byte("ok\n")) // the client may be gone
}
