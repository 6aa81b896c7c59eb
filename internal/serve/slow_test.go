//go:build unix

package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// With few open files, and clients that hold every connection for as long as the limits
// allow, operators are answered, and honest clients are once those are gone.
func testFewOpenFiles(t *testing.T, bin string) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "hello")
	}))
	defer upstream.Close()
	s := newSandbox(t, bin).serve("ulimit -n 200;", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0",
		"--upstreams="+upstream.URL, "--limits.stall=2s", "--limits.read_header=2s")
	gateway, admin := s.ready()
	address := strings.TrimPrefix(gateway, "http://")
	for round := range 2 {
		for i := range 400 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, []string{
				"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello", "GET / HTTP/1.1\r\nHost:", "",
				"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
			}[i%4])
		}
		if got, body := s.w.get(once, admin+"/readyz"); got != http.StatusOK {
			t.Errorf("round %d: /readyz answers %d %s", round, got, body)
		}
		served := 0
		for end := time.Now().Add(testTimeout); served < 20; {
			if time.Now().After(end) {
				t.Fatalf("round %d: %d honest requests were answered", round, served)
			}
			res, err := once.Get(gateway + "/")
			if err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			if res.Body.Close(); res.StatusCode == http.StatusOK {
				served++
			}
		}
	}
	if strings.Contains(s.logText(), "too many open files") {
		t.Error("it ran out of open files")
	}
}

// Connections to the admin listener are few, and none of them is held for ever.
func testManyOperators(t *testing.T, bin string) {
	s := newSandbox(t, bin).serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--admin.followers=0")
	gateway, admin := s.ready()
	closed := make(chan bool, 100)
	for range 100 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(admin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost:")
		go func() {
			_, _ = conn.Read(make([]byte, 1))
			closed <- true
		}()
	}
	for range 100 - maxOperators {
		select {
		case <-closed:
		case <-time.After(testTimeout):
			t.Fatal("more than a few connections stay open")
		}
	}
	if got, _ := s.w.get(once, gateway+"/"); got == 0 {
		t.Error("clients are not answered")
	}
	for range maxOperators { // these end with the time for a head
		<-closed
	}
	if got, _ := s.w.get(once, admin+"/healthz"); got != http.StatusOK {
		t.Errorf("/healthz answers %d", got)
	}
}

// A process that is told to end does so at once if nothing is under way, whatever idle
// connections there are, and blames nobody.
func testEndWithIdleConnections(t *testing.T, bin string) {
	testdep.Undisturbed(t, 50*time.Millisecond, func(t testing.TB) {
		s := newSandbox(t, bin).serve("", nil, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--drain=30s")
		gateway, _ := s.ready()
		if got, _ := s.w.get(http.DefaultClient, gateway+"/"); got == 0 {
			t.Fatal("no answer")
		}
		for range 3 { // without a request
			conn, err := net.Dial("tcp", strings.TrimPrefix(gateway, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		start := time.Now()
		s.signal(syscall.SIGTERM)
		if code := s.end(); code != 0 {
			t.Errorf("exits with %d", code)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		if printed := s.logText(); strings.Contains(printed, "cut off") || strings.Contains(printed, "not closed") {
			t.Errorf("it blames somebody:\n%s", printed)
		}
	})
}
