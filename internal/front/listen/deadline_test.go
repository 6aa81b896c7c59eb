package listen

import (
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever is requested and enforced, no call waits for longer, and none is given a deadline
// that has passed.
func TestDeadlineHolds(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_000_000, 0)
		d := deadline{set: func(time.Time) error { return nil }}
		some := func() time.Time {
			if r.IntN(3) == 0 {
				return time.Time{}
			}
			return now.Add(time.Duration(r.IntN(200)-50) * time.Second)
		}
		for range 200 {
			now = now.Add(time.Duration(r.IntN(10)) * time.Second)
			switch r.IntN(4) {
			case 0:
				_ = d.request(some())
			case 1:
				d.enforce(some())
			case 2:
				enforced := some()
				wanted := earlier(d.requested, enforced)
				if began := d.begin(now, enforced); began == hasPassed(wanted, now) {
					t.Fatalf("seed %d: at %v a call until %v begins: %t", seed, now, wanted, began)
				} else if began && hasPassed(d.current, now) {
					t.Fatalf("seed %d: at %v a call begins with a deadline of %v", seed, now, d.current)
				}
			case 3:
				if d.calls > 0 {
					d.end()
				}
			}
			if wanted := earlier(d.requested, d.enforced); d.calls > 0 && !wanted.IsZero() && (d.current.IsZero() || d.current.After(wanted)) {
				t.Fatalf("seed %d: a call waits until %v, and should until %v", seed, d.current, wanted)
			}
		}
	}
}

// net/http asks for six deadlines per request, and for two of them somebody waits: the idle
// connection, and the watch for a client that leaves, which is ended by a deadline.
func TestDeadlinesAreSetSeldom(t *testing.T) {
	sets := 0
	d := deadline{set: func(time.Time) error { sets++; return nil }}
	now := time.Unix(1_000_000, 0)
	read := func() {
		t.Helper()
		if !d.begin(now, time.Time{}) {
			t.Fatal("no time to read")
		}
	}
	const requests = 100
	for range requests {
		now = now.Add(time.Millisecond)
		_ = d.request(now.Add(2 * time.Minute)) // idle
		read()
		d.end()
		_ = d.request(time.Time{})
		_ = d.request(now.Add(10 * time.Second)) // the headers, which are there
		_ = d.request(time.Time{})
		read() // until the client leaves, or
		_ = d.request(past)
		if !hasPassed(d.current, now) {
			t.Fatal("the watch goes on")
		}
		d.end()
		_ = d.request(time.Time{})
	}
	if sets > 2*requests {
		t.Errorf("%d deadlines for %d requests, want two for each", sets, requests)
	}
}

// A read that a deadline woke too early goes on until its own.
func TestReadOutlivesOldDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := newHTTP1Conn(ours, &HTTPLimits{}, nil)
		defer c.Close()
		start := time.Now()
		f := func(want time.Duration) {
			t.Helper()
			if _, err := c.Read(make([]byte, 10)); err != os.ErrDeadlineExceeded || time.Since(start) != want {
				t.Errorf("%v after %s, want %s", err, time.Since(start), want)
			}
		}
		_ = c.SetReadDeadline(start.Add(time.Second))
		f(time.Second)
		f(time.Second) // there is no time left
		_ = c.SetReadDeadline(start.Add(10 * time.Second))
		go func() {
			time.Sleep(2 * time.Second)
			_ = c.SetReadDeadline(start.Add(5 * time.Second)) // earlier, for a read that waits
		}()
		f(5 * time.Second)
		_ = c.SetReadDeadline(start.Add(6 * time.Second))
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = c.SetReadDeadline(start.Add(20 * time.Second)) // later
		}()
		f(20 * time.Second)
		_ = c.SetReadDeadline(start.Add(21 * time.Second))
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = c.SetReadDeadline(time.Time{})
			time.Sleep(time.Hour)
			_, _ = theirs.Write([]byte("hello"))
		}()
		if n, err := c.Read(make([]byte, 10)); n != 5 || err != nil || time.Since(start) < time.Hour {
			t.Errorf("%d, %v after %s", n, err, time.Since(start))
		}
	})
}
