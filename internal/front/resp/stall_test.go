package resp

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// pipeTo connects to s by a pipe, in the time of the test's bubble.
func pipeTo(s *Server) net.Conn {
	ours, theirs := net.Pipe()
	s.done.Add(1)
	s.open.Add(1)
	go newConn(s, ours).serve()
	return theirs
}

// reads returns what is sent until the end, and how long that took.
func reads(c net.Conn) (string, time.Duration) {
	start := time.Now()
	text, _ := io.ReadAll(c)
	return string(text), time.Since(start)
}

const stall = 300 * time.Millisecond

func stallServer() *Server { return New(Options{Store: memory.New(), Stall: stall}) }

// wantStalled expects that the connection ended after the stall time, and is counted.
func wantStalled(t *testing.T, s *Server, took time.Duration) {
	t.Helper()
	if took < stall*3/4 || took > stall {
		t.Errorf("closed after %s, want %s", took, stall)
	}
	synctest.Wait()
	if n := s.Stats().Stalled; n != 1 {
		t.Errorf("%d connections are counted as stalled", n)
	}
}

// A command that is begun and not finished ends the connection, after what was asked before it
// is answered.
func TestStalledCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stallServer()
		c := pipeTo(s)
		go func() { _, _ = io.WriteString(c, "PING\r\n*2\r\n$4\r\nECHO\r\n") }()
		got, took := reads(c)
		if got != "+PONG\r\n" {
			t.Errorf("%q", got)
		}
		wantStalled(t, s, took)
	})
}

// A byte now and then is no progress.
func TestStalledDrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stallServer()
		c := pipeTo(s)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			for range 100 {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(stall / 6)
			}
		}()
		_, took := reads(c)
		wantStalled(t, s, took)
		<-ended
	})
}

// Replies that are not taken end the connection.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stallServer()
		c := pipeTo(s)
		start := time.Now()
		echo := "*2\r\n$4\r\nECHO\r\n$60000\r\n" + strings.Repeat("x", 60000) + "\r\n"
		for { // until it is disconnected, and never reading
			if _, err := io.WriteString(c, echo); err != nil {
				break
			}
		}
		wantStalled(t, s, time.Since(start))
	})
}

// A connection that only does nothing may stay, unless there is a limit for that.
func TestSilenceIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stallServer()
		c := pipeTo(s)
		in := bufio.NewReader(c)
		for range 3 {
			ping(t, c, in, "PING\r\n")
			time.Sleep(100 * stall)
		}
		_ = c.Close()
		synctest.Wait()
		if n := s.Stats().Stalled; n != 0 {
			t.Errorf("%d connections are counted as stalled", n)
		}
	})
}

// A stream of commands that never ends with a whole one is progress, however long it lasts, as
// long as each command takes less than the stall time.
func TestUnfinishedStreamIsNoStall(t *testing.T) {
	for _, every := range []time.Duration{stall / 10, stall / 2, stall - time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := stallServer()
			c := pipeTo(s)
			in := bufio.NewReader(c)
			const command = "*1\r\n$4\r\nPING\r\n"
			if _, err := io.WriteString(c, command[:5]); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				time.Sleep(every)
				ping(t, c, in, command[5:]+command[:5])
			}
			_, took := reads(c) // and then it stands still
			wantStalled(t, s, took)
		})
	}
}

func ping(t *testing.T, c net.Conn, in *bufio.Reader, raw string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
	if got, err := in.ReadString('\n'); got != "+PONG\r\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

// A client that does not authenticate in time is disconnected, whether it asks something or
// not; one that has may be silent afterwards.
func TestAuthWithin(t *testing.T) {
	const within = 10 * time.Second
	start := func() *Server {
		return New(Options{Store: memory.New(), Users: []User{{Name: "default", Password: "secret"}}, AuthWithin: within})
	}
	const denied = "-NOAUTH Authentication required.\r\n"
	for sent, want := range map[string]string{"": "", "PING\r\n": denied, "PING\r\nAUTH": denied} {
		for _, after := range []time.Duration{0, within / 2, within - 1} {
			synctest.Test(t, func(t *testing.T) {
				s := start()
				c := pipeTo(s)
				go func() {
					if time.Sleep(after); sent != "" { // a pipe passes an empty write on
						_, _ = io.WriteString(c, sent)
					}
				}()
				if got, took := reads(c); got != want || took != within {
					t.Errorf("%q after %s: got %q, closed after %s; want %q and %s", sent, after, got, took, want, within)
				}
				synctest.Wait()
				if n := s.Stats().Stalled; n != 1 {
					t.Errorf("%d connections are counted as stalled", n)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := pipeTo(start())
		in := bufio.NewReader(c)
		time.Sleep(within - 1)
		_, _ = io.WriteString(c, "AUTH secret\r\n")
		if got, _ := in.ReadString('\n'); got != "+OK\r\n" {
			t.Fatalf("AUTH: %q", got)
		}
		time.Sleep(2 * within)
		ping(t, c, in, "PING\r\n")
		_ = c.Close()
	})
}
