package main

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// upstream is what the gateways stand before. It never closes a connection by itself: a
// gateway that had just sent something on it would rightly answer 502, and on a busy
// machine that happens.
type upstream struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	idle map[net.Conn]bool
}

// newUpstream answers at once, but under slowPath, where it takes a while.
func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{url: "http://" + l.Addr().String(), idle: map[net.Conn]bool{}}
	u.server = &http.Server{
		ConnState: u.note,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == slowPath {
				time.Sleep(slowTakes)
			}
			fmt.Fprintln(w, "ok")
		}),
	}
	go func() { _ = u.server.Serve(l) }()
	return u, nil
}

func (u *upstream) note(c net.Conn, is http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if is == http.StateIdle {
		u.idle[c] = true
	} else {
		delete(u.idle, c)
	}
}

// hangUp closes idle connections, while nobody asks: what is left in the gateways can be
// counted then.
func (u *upstream) hangUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.idle {
		_ = c.Close()
	}
	clear(u.idle)
}

func (u *upstream) close() { _ = u.server.Close() }
