package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// faulty is a listener that fails some times before it accepts.
type faulty struct {
	net.Listener
	err  error
	left atomic.Int64
}

func (f *faulty) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", f.err)}
	}
	return f.Listener.Accept()
}

// Whatever accepting fails with, it goes on, without spinning.
func TestAcceptGoesOn(t *testing.T) {
	server, _ := certificate(t)
	for _, number := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EPROTO, syscall.ECONNABORTED, syscall.EIO} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(number.Error(), ", TLS ", secure), func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				g, err := New(Options{Upstreams: []*url.URL{serve(t, hello)}})
				if err != nil {
					t.Fatal(err)
				}
				f := &faulty{Listener: l, err: number}
				f.left.Store(5)
				served := make(chan error, 1)
				start := time.Now()
				go func() {
					if secure {
						served <- g.Serve(f, server)
					} else {
						served <- g.Serve(f, nil)
					}
				}()
				conn := dial(t, l.Addr().String())
				soon(t, "it accepts", func() bool { return g.Connections() == 1 })
				if took := time.Since(start); took < 5*firstRest {
					t.Errorf("five failures in %s: it spins", took)
				}
				conn.Close()
				f.left.Store(1 << 40) // and it ends while it fails
				go func() { _, _ = net.Dial("tcp", l.Addr().String()) }()
				g.Close()
				if err := <-served; err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
		}
	}
}

// A listener that is broken for good is told.
func TestBrokenListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Options{Upstreams: []*url.URL{serve(t, hello)}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	f := &faulty{Listener: l, err: syscall.EBADF}
	f.left.Store(1 << 40)
	if err := g.Serve(f, nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("Serve: %v", err)
	}
}

// However many connections there are above the limit, no more than some stay open.
func TestManyMoreConnections(t *testing.T) {
	const limit = 70
	g := start(t, Options{Upstreams: []*url.URL{serve(t, hello)}, Limits: Limits{Connections: limit, ReadHeader: 2 * time.Second}}, nil)
	for range 3 * limit {
		dial(t, g.addr)
	}
	soon(t, "they have come", func() bool { return g.Connections() >= limit })
	time.Sleep(50 * time.Millisecond)
	if n := g.Connections(); n > limit+64 {
		t.Errorf("%d are open, with a limit of %d", n, limit)
	}
	soon(t, "honest clients are served afterwards", func() bool {
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(g.url)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}
