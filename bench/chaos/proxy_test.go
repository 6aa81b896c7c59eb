package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// echo answers every line with itself.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func TestProxyMoods(t *testing.T) {
	p, err := newProxy(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	set := func(to mood) {
		t.Helper()
		if err := p.set(to); err != nil {
			t.Fatal(err)
		}
	}
	dial := func() (net.Conn, *bufio.Reader) {
		t.Helper()
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, bufio.NewReader(c)
	}
	say := func(c net.Conn, in *bufio.Reader, timeout time.Duration) error {
		_, _ = io.WriteString(c, "hello\n")
		_ = c.SetReadDeadline(time.Now().Add(timeout))
		_, err := in.ReadString('\n')
		return err
	}
	const timeout = 30 * time.Second
	c, in := dial()
	if err := say(c, in, timeout); err != nil {
		t.Errorf("passing: %v", err)
	}
	set(delayed)
	began := time.Now()
	if err := say(c, in, timeout); err != nil || time.Since(began) < lag {
		t.Errorf("delayed: %v after %s", err, time.Since(began))
	}
	set(silent)
	if err := say(c, in, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("silent: %v", err)
	}
	set(passing)
	_ = c.SetReadDeadline(time.Now().Add(timeout))
	if _, err := in.ReadString('\n'); err != nil {
		t.Errorf("what was held back does not come: %v", err)
	}
	set(refusing)
	if err := say(c, in, timeout); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that was cut: %v", err)
	}
	if c, err := net.Dial("tcp", p.address); err == nil {
		_ = c.Close()
		t.Error("a connection is accepted while refusing")
	}
	set(passing)
	c, in = dial()
	if err := say(c, in, timeout); err != nil {
		t.Errorf("passing again: %v", err)
	}
}

// Every way to garble changes one piece in so many, and the others not.
func TestGarble(t *testing.T) {
	const sent = "$5\r\nhello\r\n"
	f := func(is mood, want func(got string) bool) {
		t.Helper()
		changed := 0
		for range 100 * garbleEvery {
			if got := string(garble(is, []byte(sent))); got != sent {
				changed++
				if !want(got) {
					t.Errorf("mood %d makes %q of %q", is, got, sent)
				}
			}
		}
		if (changed > 0) != (is >= surplus) || changed > 400 {
			t.Errorf("mood %d changes %d of %d pieces", is, changed, 100*garbleEvery)
		}
	}
	f(passing, nil)
	f(delayed, nil)
	f(surplus, func(got string) bool { return got == sent+"+OK\r\n" })
	f(flipped, func(got string) bool { return len(got) == len(sent) })
	f(truncated, func(got string) bool { return len(got) < len(sent) && strings.HasPrefix(sent, got) })
	f(doubled, func(got string) bool { return got == sent+sent })
}
