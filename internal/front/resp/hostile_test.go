package resp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// A command that is begun has the time of a stall, however long a connection may be idle, and
// whenever it begins.
func TestStallWhereSilenceIsBounded(t *testing.T) {
	for _, idle := range []time.Duration{stall / 3, stall, 3 * stall, 1000 * stall} {
		for _, asked := range []int{0, 1, 20} {
			for _, begun := range []string{"P", "*2\r\n$4\r\nECHO\r\n", "PING\r\n*1\r\n"} {
				synctest.Test(t, func(t *testing.T) {
					s := New(Options{Store: memory.New(), Stall: stall, Idle: idle})
					c := pipeTo(s)
					in := bufio.NewReader(c)
					for range asked {
						ping(t, c, in, "PING\r\n")
						time.Sleep(idle / 3)
					}
					go func() { _, _ = io.WriteString(c, begun) }()
					start := time.Now()
					_, _ = io.Copy(io.Discard, in)
					if took := time.Since(start); took != stall {
						t.Errorf("idle %s, %q after %d commands: closed after %s, want %s", idle, begun, asked, took, stall)
					}
				})
			}
		}
	}
}

// Nothing that a client can say without a password gives it more time to authenticate.
func TestAuthWithinWhateverIsSaid(t *testing.T) {
	for _, said := range []string{"RESET\r\n", "PING\r\n", "HELLO 3\r\n", "\r\n", "*0\r\n", "AUTH\r\n", "x"} {
		synctest.Test(t, func(t *testing.T) {
			const within = 10 * time.Second
			s := New(Options{Store: memory.New(), Users: []User{{Name: "default", Password: "secret"}}, AuthWithin: within, Idle: time.Minute})
			c := pipeTo(s)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer c.Close()
				for range 20 {
					if _, err := io.WriteString(c, said); err != nil {
						return
					}
					time.Sleep(within * 3 / 10)
				}
			}()
			if _, took := reads(c); took != within {
				t.Errorf("%q again and again: closed after %s, want %s", said, took, within)
			}
			<-ended
		})
	}
}

// Whoever has to authenticate again has as much time for it as at first: after RESET, and when
// its password was changed, or was asked for the first time, however long it was connected.
func TestTimeToAuthenticateAgain(t *testing.T) {
	const within = 10 * time.Second
	users := func(password string) []User { return []User{{Name: "default", Password: password}} }
	f := func(name string, first []User, lose func(*Server, io.Writer, *bufio.Reader)) {
		for _, after := range []time.Duration{0, within / 2, 100 * within} {
			for _, idle := range []time.Duration{0, time.Hour} {
				synctest.Test(t, func(t *testing.T) {
					s := New(Options{Store: memory.New(), Users: first, AuthWithin: within, Idle: idle})
					c := pipeTo(s)
					defer c.Close()
					in := bufio.NewReader(c)
					if first != nil {
						_, _ = io.WriteString(c, "AUTH old\r\n")
						if got, _ := in.ReadString('\n'); got != "+OK\r\n" {
							t.Fatalf("AUTH: %q", got)
						}
					}
					time.Sleep(after)
					lose(s, c, in)
					_, _ = io.WriteString(c, "PING\r\n")
					if got, _ := in.ReadString('\n'); got != "-NOAUTH Authentication required.\r\n" {
						t.Fatalf("%s after %s: %q", name, after, got)
					}
					time.Sleep(within - 1)
					_, _ = io.WriteString(c, "AUTH new\r\n")
					if got, err := in.ReadString('\n'); got != "+OK\r\n" {
						t.Errorf("%s after %s: AUTH is answered %q, %v", name, after, got, err)
					}
				})
			}
		}
	}
	f("RESET", users("old"), func(s *Server, c io.Writer, in *bufio.Reader) {
		s.SetUsers(append(users("old"), User{Name: "x", Password: "x"}))
		_, _ = io.WriteString(c, "RESET\r\n")
		_, _ = in.ReadString('\n')
		s.SetUsers(users("new"))
	})
	f("another password", users("old"), func(s *Server, _ io.Writer, _ *bufio.Reader) { s.SetUsers(users("new")) })
	f("the first password", nil, func(s *Server, _ io.Writer, _ *bufio.Reader) { s.SetUsers(users("new")) })
}

// What a command of many requests takes grows with its length, not with its square.
func TestManyRequestsInLittleMemory(t *testing.T) {
	takes := func(requests int) int64 {
		words := []string{"TG.MCHECK"}
		for i := range requests {
			if i > 0 {
				words = append(words, "NEXT")
			}
			words = append(words, "PATH", "/x", "AS", "next", "NEXT", "BODY", strings.Repeat("x", 1900))
		}
		in := fmt.Appendf(nil, "*%d\r\n", len(words))
		for _, w := range words {
			in = fmt.Appendf(in, "$%d\r\n%s\r\n", len(w), w)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out := play(t, in, nil)
		runtime.ReadMemStats(&after)
		if n := bytes.Count(out, []byte("decision")); n != requests {
			t.Fatalf("%d answers to %d requests: %.200q", n, requests, out)
		}
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	takes(1) // what is made once
	few, many := takes(16), takes(128)
	if most := few * 3 * 128 / 16; many > most {
		t.Errorf("128 requests take %d bytes, 16 take %d", many, few)
	}
}

// halves is a script whose sides are closed one by one.
type halves struct {
	script
	closed bool // for writing
}

func (h *halves) CloseWrite() error {
	h.closed = true
	return nil
}

// A client whose large command is refused is told, and the rest of the command is read: a reset
// could take the reason away before the client has seen it.
func TestRefusedLargeCommandIsTold(t *testing.T) {
	for _, size := range []int{pipeBuffer, MaxBulk} {
		s := New(Options{Store: memory.New(), LargeBytes: 1})
		c := &halves{script: script{in: fmt.Appendf(nil, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size))}}
		s.done.Add(1)
		newConn(s, c).serve()
		if got := c.out.String(); got != "-ERR too many large commands at once, try again later\r\n" || !c.closed || len(c.in) > 0 {
			t.Errorf("%d bytes: %q, closed for writing: %t, %d bytes are not read", size, got, c.closed, len(c.in))
		}
		if n := s.large.Load(); n != 0 {
			t.Errorf("%d bytes of large buffers are left", n)
		}
	}
}
