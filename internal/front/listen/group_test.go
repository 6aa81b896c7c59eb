package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// echoLines serves a protocol that is not HTTP until l is closed: a line is answered with
// itself, "big" with more than any buffer holds.
func echoLines(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			c := ConnOf(conn)
			if c.Surplus() {
				_, _ = io.WriteString(conn, "too many\n")
				return
			}
			in := bufio.NewReader(conn)
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				c.SetActive(true)
				if line == "big\n" {
					line = strings.Repeat("x", 64<<20)
				}
				_, err = io.WriteString(conn, line)
				c.SetActive(false)
				if err != nil {
					return
				}
			}
		}()
	}
}

func startLines(t testing.TB, network string, limits Limits, config *tls.Config, notTLS func(net.Conn, []byte)) (*Group, func() net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = t.TempDir() + "/s"
	}
	inner, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGroup(Options{Limits: limits, NotTLS: notTLS})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	l := g.Listen(ctx, inner, config)
	t.Cleanup(func() { l.Close(); l.Close() })
	go echoLines(l)
	return g, func() net.Conn {
		conn, err := net.Dial(network, inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		return conn
	}
}

// A server of another protocol gets connections that are counted, told when they are too
// many, and gone when their client stalls.
func TestGroupOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	server := certificate(t)
	for _, network := range []string{"tcp", "unix"} {
		for _, config := range []*tls.Config{nil, server} {
			t.Run(fmt.Sprintf("%s, TLS %v", network, config != nil), func(t *testing.T) {
				testdep.Undisturbed(t, brief/2, func(t testing.TB) {
					g, connect := startLines(t, network, Limits{Connections: 2, Handshake: 5 * brief, Stall: 3 * brief}, config, nil)
					say := func(line string) (net.Conn, string) {
						conn := connect()
						if config != nil {
							conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
						}
						fmt.Fprint(conn, line)
						if line == "big\n" {
							return conn, ""
						}
						answer, _ := bufio.NewReader(conn).ReadString('\n')
						return conn, answer
					}
					first, answer := say("hello\n")
					if answer != "hello\n" {
						t.Fatalf("%q", answer)
					}
					say("big\n") // and reads nothing
					soon(t, "it is in use", func() bool { return g.Open() == 2 && g.Active() == 1 })
					if _, answer := say("hello\n"); answer != "too many\n" {
						t.Errorf("the third: %q", answer)
					}
					soon(t, "the client that does not read is gone", func() bool { return g.Open() == 1 && g.Active() == 0 })
					first.Close()
					soon(t, "so is the first", func() bool { return g.Open() == 0 })
					if config != nil {
						connect() // says nothing
						soon(t, "it is accepted", func() bool { return g.Open() == 1 })
						soon(t, "and gone without a handshake", func() bool { return g.Open() == 0 })
					}
				})
			})
		}
	}
}

// A client that does not speak TLS can be answered.
func TestNotTLS(t *testing.T) {
	g, connect := startLines(t, "tcp", Limits{}, certificate(t), func(conn net.Conn, start []byte) {
		fmt.Fprintf(conn, "%q is not TLS\n", start)
	})
	conn := connect()
	fmt.Fprint(conn, "hello\n")
	if answer, _ := io.ReadAll(conn); string(answer) != "\"hello\" is not TLS\n" {
		t.Errorf("%q", answer)
	}
	soon(t, "it is gone", func() bool { return g.Open() == 0 })
}

// Handshakes in progress end with the context, so that nothing is left of a server.
func TestHandshakesEndWithTheContext(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGroup(Options{Limits: Limits{Handshake: -1}})
	ctx, cancel := context.WithCancel(t.Context())
	l := g.Listen(ctx, inner, certificate(t))
	dial(t, inner.Addr().String(), nil)
	soon(t, "it is accepted", func() bool { return g.Open() == 1 })
	l.Close()
	cancel()
	if _, err := l.Accept(); err == nil {
		t.Error("a connection without a handshake was accepted")
	}
	soon(t, "it is gone", func() bool { return g.Open() == 0 })
}
