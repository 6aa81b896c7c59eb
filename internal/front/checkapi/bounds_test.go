package checkapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A body is bounded, whether its length is told or not.
func TestLongBodies(t *testing.T) {
	s := newServer(t, "", nil)
	for _, told := range []bool{true, false} {
		for _, n := range []int{100, smallBody, smallBody + 1, maxBody - 100, maxBody, maxBody + 1, 2 * maxBody} {
			text := `{"ip":"192.0.2.1"}`
			text += strings.Repeat(" ", max(0, n-len(text)))
			r := httptest.NewRequest("POST", "/v1/check", strings.NewReader(text))
			r.RemoteAddr = "127.0.0.1:1"
			if !told {
				r.ContentLength = -1
			}
			want := 200
			if n > maxBody {
				want = 413
			}
			if w := serve(t, s, r); w.Code != want {
				t.Errorf("%d bytes, told is %t: %d, want %d", n, told, w.Code, want)
			}
			if used := s.room.used.Load(); used != 0 {
				t.Fatalf("%d bytes of room are still taken", used)
			}
		}
	}
}

// endless is a body that never ends and never says so.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	e.sent += len(p)
	return copy(p, strings.Repeat(" ", len(p))), nil
}

func TestEndlessBody(t *testing.T) {
	s := newServer(t, "", nil)
	body := new(endless)
	r := httptest.NewRequest("POST", "/v1/check", body)
	r.RemoteAddr, r.ContentLength = "127.0.0.1:1", -1
	if w := serve(t, s, r); w.Code != 413 || body.sent > maxBody+1 {
		t.Errorf("%d, %d bytes were read", w.Code, body.sent)
	}
}

// Clients that begin long bodies and stop hold what they have sent, and all of them
// together no more than there is room for. Whoever asks shortly is answered meanwhile.
func TestStalledBodiesHoldBoundedMemory(t *testing.T) {
	s := newServer(t, "", nil)
	server := httptest.NewServer(s)
	defer server.Close()
	before := heap()
	const clients = 200
	var refused int
	for range clients {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", maxBody)
		// All but the end; where there is no room, the answer comes before.
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = io.CopyN(c, new(endless), maxBody-1)
		}()
		answered := make(chan bool, 1)
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			answered <- err == nil && res.StatusCode == http.StatusServiceUnavailable
		}()
		select {
		case <-sent:
		case no := <-answered:
			if no {
				refused++
			}
		}
	}
	testdep.Await(time.Minute, func() bool { return s.room.used.Load() >= maxBodies-maxBody*2 })
	used := s.room.used.Load()
	if used > maxBodies || used < maxBodies/2 {
		t.Errorf("%d bytes of room are taken, of %d", used, maxBodies)
	}
	if grown := heap() - before; grown > 2*maxBodies+clients*(64<<10) {
		t.Errorf("%d clients hold %d MiB", clients, grown>>20)
	}
	if a := post(t, s, "check", `{"ip":"192.0.2.1"}`); a.Decision != "allowed" {
		t.Errorf("%+v", a)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What a large question took is not kept.
func TestExchangesStaySmall(t *testing.T) {
	x := new(exchange)
	for range maxKeptQuestions + 1 {
		x.question()
	}
	x.in = make([]byte, 0, maxKept+1)
	var r room
	x.done(&r)
	for range 100 {
		x := exchanges.Get().(*exchange)
		if len(x.spare) > maxKeptQuestions || cap(x.in) > maxKept {
			t.Fatal("a large exchange was kept")
		}
	}
}
