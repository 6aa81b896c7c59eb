package resp

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/store/memory"
)

// pipes is a listener whose connections are pipes, which virtual time works with.
type pipes struct {
	backlog chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{backlog: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.backlog:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

// dial returns nil if nobody listens.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	select {
	case p.backlog <- theirs:
		return ours
	case <-p.closed:
		return nil
	}
}

// While the server shuts down, clients that ask are answered, and so is one that connected
// just before, as long as none is silent for longer than it may.
func TestAskedWhileShuttingDown(t *testing.T) {
	for _, every := range []time.Duration{0, quietAtEnd / 2, quietAtEnd - 1} {
		synctest.Test(t, func(t *testing.T) {
			s, l := New(Options{Store: memory.New()}), newPipes()
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			c, newcomer := l.dial(), l.dial()
			in, newcomerIn := bufio.NewReader(c), bufio.NewReader(newcomer)
			ping(t, c, in, "PING\r\n")
			synctest.Wait()
			start := time.Now()
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(context.Background()) }()
			synctest.Wait()
			if l.dial() != nil {
				t.Error("it still listens")
			}
			for range 4 {
				time.Sleep(every)
				ask(t, c, in)
			}
			time.Sleep(newcomerAtEnd - 1 - time.Since(start))
			ping(t, newcomer, newcomerIn, "PING\r\n")
			select {
			case err := <-down:
				t.Errorf("Shutdown has ended while somebody was asking: %v", err)
			default:
			}
			if err := <-down; err != nil {
				t.Error(err)
			}
			if took, want := time.Since(start), newcomerAtEnd-1+quietAtEnd; took != want {
				t.Errorf("Shutdown took %s, want %s", took, want)
			}
			for _, rest := range []*bufio.Reader{in, newcomerIn} {
				if got, _ := io.ReadAll(rest); len(got) > 0 {
					t.Errorf("%q", got)
				}
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// A client that goes on asking is closed between two answers when the time is over, and one
// that is silent before.
func TestShutdownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := New(Options{Store: memory.New()}), newPipes()
		go func() { _ = s.Serve(l) }()
		busy, quiet, newcomer := l.dial(), l.dial(), l.dial()
		in := bufio.NewReader(busy)
		ping(t, busy, in, "PING\r\n")
		ping(t, quiet, bufio.NewReader(quiet), "PING\r\n")
		synctest.Wait()
		start := time.Now()
		go func() { _ = s.Shutdown(context.Background()) }()
		ends := make(chan time.Duration, 2)
		for _, c := range []net.Conn{quiet, newcomer} {
			go func() {
				_, took := reads(c)
				ends <- took
			}()
		}
		for {
			if _, err := io.WriteString(busy, "PING\r\n"); err != nil {
				break
			}
			if got, err := in.ReadString('\n'); got != "+PONG\r\n" {
				t.Fatalf("%q, %v", got, err)
			}
			time.Sleep(quietAtEnd / 4)
		}
		if took := time.Since(start); took < graceAtEnd || took > graceAtEnd+quietAtEnd {
			t.Errorf("the busy client was closed after %s, want %s", took, graceAtEnd)
		}
		if a, b := <-ends, <-ends; a != quietAtEnd || b != newcomerAtEnd {
			t.Errorf("closed after %s and %s, want %s and %s", a, b, quietAtEnd, newcomerAtEnd)
		}
		synctest.Wait()
		if st := s.Stats(); st.Connections != 0 || st.Stalled != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// handshaking is a listener that still has clients when it is closed, as one has that does the
// handshakes of TLS.
type handshaking struct {
	*pipes
	late chan net.Conn
}

func (h *handshaking) Accept() (net.Conn, error) {
	if c, err := h.pipes.Accept(); err == nil {
		return c, nil
	}
	if c, ok := <-h.late; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Clients that were connected when the server was told to shut down, and come out of their
// handshake meanwhile, are answered. Who takes longer than the others are given is not waited for.
func TestHandshakesWhileShuttingDown(t *testing.T) {
	for _, others := range []int{0, 1} {
		for _, after := range []time.Duration{0, quietAtEnd, graceAtEnd - newcomerAtEnd} {
			synctest.Test(t, func(t *testing.T) {
				s, l := New(Options{Store: memory.New()}), &handshaking{newPipes(), make(chan net.Conn)}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				for range others {
					c := l.dial()
					ping(t, c, bufio.NewReader(c), "PING\r\n")
				}
				synctest.Wait()
				down := make(chan error, 1)
				go func() { down <- s.Shutdown(context.Background()) }()
				synctest.Wait()
				time.Sleep(after)
				for i := range 3 {
					ours, theirs := net.Pipe()
					l.late <- theirs
					_ = ours.SetDeadline(time.Now().Add(time.Hour))
					if _, err := io.WriteString(ours, "PING\r\n"); err != nil {
						t.Fatalf("client %d, %s after the end began: %v", i, after, err)
					}
					if got, err := bufio.NewReader(ours).ReadString('\n'); got != "+PONG\r\n" {
						t.Fatalf("client %d, %s after the end began: %q, %v", i, after, got, err)
					}
				}
				close(l.late)
				if err := <-down; err != nil {
					t.Error(err)
				}
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s, l := New(Options{Store: memory.New()}), &handshaking{newPipes(), make(chan net.Conn)}
		go func() { _ = s.Serve(l) }()
		synctest.Wait()
		start := time.Now()
		if err := s.Shutdown(context.Background()); err != nil || time.Since(start) != graceAtEnd {
			t.Errorf("%v after %s, want %s", err, time.Since(start), graceAtEnd)
		}
		close(l.late)
	})
}

func ask(t *testing.T, c net.Conn, in *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(c, "CL.THROTTLE k 100 100 60 0\r\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"*5", ":0", ":101", ":101", ":-1", ":0"} {
		if got, err := in.ReadString('\n'); got != want+"\r\n" {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
}
