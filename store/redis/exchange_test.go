package redis

import (
	"net"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// watched is a connection that is watched, and its other end.
func watched(t *testing.T) (e *exchanges, near net.Conn, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	e = new(exchanges)
	near = e.watch("a:1", conn)
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return e, near, far
}

// What a server has said is heard before this process reads it.
func TestUnreadIsHeard(t *testing.T) {
	e, near, far := watched(t)
	if heard, _ := e.all.last(); !heard.IsZero() {
		t.Fatal("something was heard before anything was said")
	}
	if _, err := far.Write([]byte("+OK\r\n")); err != nil {
		t.Fatal(err)
	}
	testdep.Eventually(t, "what was said is heard", func() bool { heard, _ := e.all.last(); return !heard.IsZero() })
	said := make([]byte, 5)
	if n, err := near.Read(said); err != nil || n != 5 {
		t.Fatalf("%d bytes, %v: looking has read them", n, err)
	}
	before, _ := e.all.last()
	for end := time.Now().Add(time.Minute); ; { // whoever looked before may say so only now, and once
		time.Sleep(3 * peekEvery)
		after, _ := e.all.last()
		if after == before {
			break
		}
		if before = after; time.Now().After(end) {
			t.Fatal("what was read is heard again")
		}
	}
}

// A server is asked when the first thing is written that it has not answered.
func TestAskedIsTheFirstUnanswered(t *testing.T) {
	e, near, far := watched(t)
	own := e.byAddr["a:1"]
	write := func() time.Time {
		t.Helper()
		if _, err := near.Write([]byte("PING\r\n")); err != nil {
			t.Fatal(err)
		}
		_, asked := own.last()
		return asked
	}
	first := write()
	if again := write(); first.IsZero() || again != first {
		t.Errorf("asked at %v, and then at %v", first, again)
	}
	if _, err := far.Write([]byte("+")); err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if heard, asked := own.last(); !heard.After(asked) {
		t.Errorf("asked at %v, heard at %v", asked, heard)
	}
	if next := write(); !next.After(first) {
		t.Errorf("asked at %v, and after an answer at %v", first, next)
	}
}
