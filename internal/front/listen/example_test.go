package listen_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"

	"tidegate.dev/tidegate/internal/front/listen"
)

// A server of HTTP: what is not said has a default.
func ExampleNewServer() {
	s := listen.NewServer(listen.ServerOptions{
		Handler: http.FileServer(http.Dir(".")),
		Limits:  listen.HTTPLimits{Limits: listen.Limits{Connections: 1000}},
	})
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(s.Serve(l, nil)) // until s.Shutdown
}

// A server of another protocol.
func ExampleNewGroup() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inner, err := net.Listen("tcp", "127.0.0.1:6380")
	if err != nil {
		log.Fatal(err)
	}
	group := listen.NewGroup(listen.Options{Limits: listen.Limits{Connections: 1000}})
	l := group.Listen(ctx, inner, new(tls.Config))
	for {
		conn, err := l.Accept() // its handshake is done
		if err != nil {
			return // l was closed: other errors are retried
		}
		go func() {
			defer conn.Close()
			if listen.ConnOf(conn).Surplus() {
				_, _ = io.WriteString(conn, "-ERR max number of clients reached\r\n")
				return
			}
			_, _ = io.Copy(conn, conn)
		}()
	}
}
