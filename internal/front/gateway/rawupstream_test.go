package gateway

import (
	"net"
	"testing"
)

// rawUpstream is an upstream that talks as it likes on each of its connections. When talk
// returns, the connection is closed.
func rawUpstream(t testing.TB, talk func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, l, talk)
	return l
}

// serveConns calls talk for each connection to l, until the test ends.
func serveConns(t testing.TB, l net.Listener, talk func(net.Conn)) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				talk(conn)
			}()
		}
	}()
}
