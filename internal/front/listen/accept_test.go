package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
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

// Whatever accepting fails with, it goes on, without spinning, and frees what it can.
func TestAcceptGoesOn(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		for _, number := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EPROTO, syscall.ECONNABORTED, syscall.EIO} {
			t.Run(number.Error(), func(t *testing.T) {
				t.Parallel()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				var reclaimed atomic.Int64
				s := NewServer(ServerOptions{Handler: hello, Reclaim: func() { reclaimed.Add(1) }})
				f := &faulty{Listener: l, err: number}
				f.left.Store(5)
				served := make(chan error, 1)
				start := time.Now()
				go func() { served <- s.Serve(f, config) }()
				conn := dial(t, l.Addr().String(), nil)
				soon(t, "it accepts", func() bool { return s.Connections() == 1 })
				if took := time.Since(start); took < 5*firstBackoff {
					t.Errorf("five failures in %s: it spins", took)
				}
				if n := reclaimed.Load(); n != 5 {
					t.Errorf("%d of five failures reclaimed", n)
				}
				conn.Close()
				f.left.Store(1 << 40) // and it ends while it fails
				go func() { _, _ = net.Dial("tcp", l.Addr().String()) }()
				s.Close()
				if err := <-served; err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
		}
	})
}

// A listener that is broken for good is an error.
func TestBrokenListener(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(ServerOptions{Handler: hello})
		defer s.Close()
		f := &faulty{Listener: l, err: syscall.EBADF}
		f.left.Store(1 << 40)
		if err := s.Serve(f, config); !errors.Is(err, syscall.EBADF) {
			t.Errorf("Serve: %v", err)
		}
	})
}

// However many connections come above the limit, no more than the surplus stay open, and
// clients are served afterwards.
func TestManyMoreConnections(t *testing.T) {
	t.Parallel()
	f := func(limit, surplus, most int) {
		t.Helper()
		s := start(t, ServerOptions{Handler: hello, Limits: HTTPLimits{
			Limits: Limits{Connections: limit, Surplus: surplus}, ReadHeader: time.Second,
		}}, nil)
		var open atomic.Int64
		for range 3 * limit {
			conn := dial(t, s.addr, nil)
			open.Add(1)
			go func() {
				_, _ = conn.Read(make([]byte, 1))
				open.Add(-1)
			}()
		}
		soon(t, "the rest is closed", func() bool { return open.Load() <= int64(most) })
		if n := s.Connections(); n > int64(most) {
			t.Errorf("%d are open, with a limit of %d and a surplus of %d", n, limit, surplus)
		}
		soon(t, "clients are served afterwards", func() bool {
			res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + s.addr)
			if err != nil {
				return false
			}
			res.Body.Close()
			return res.StatusCode == http.StatusOK
		})
	}
	f(70, 0, 134)
	f(20, 0, 40)
	f(20, 5, 25)
	f(20, -1, 20)
}
