package ginlimit_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/ginlimit"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

func init() { gin.SetMode(gin.TestMode) }

// one lets a caller have one connection at a time, and counts what fails.
const one = `
version: 1
rules:
  - { name: open, per: everyone, concurrency: { slots: 1, lease: 30s } }
  - { name: failed, per: everyone, limits: 100/hour, count: { status: [401] } }
`

func gate(t *testing.T, text string) *tidegate.Gate {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tidegate.NewGate(rules.NewLive(set), memory.New())
}

func serve(t *testing.T, handlers ...gin.HandlerFunc) *httptest.Server {
	t.Helper()
	router := gin.New()
	router.GET("/:name", handlers...)
	srv := httptest.NewServer(router)
	t.Cleanup(srv.Close)
	return srv
}

func get(t *testing.T, srv *httptest.Server) (int, string) {
	t.Helper()
	resp, err := srv.Client().Get(srv.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A hijacked connection holds its slot until it is closed, also after its handler.
func TestHijackedConnectionHoldsItsSlot(t *testing.T) {
	hijacked := make(chan net.Conn, 1)
	srv := serve(t, ginlimit.Middleware(httplimit.Gate(gate(t, one))), func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		hijacked <- conn
	})
	ask := func() net.Conn {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		return conn
	}
	ask()
	conn := <-hijacked
	if line, _ := bufio.NewReader(ask()).ReadString('\n'); !strings.Contains(line, " 429 ") {
		t.Errorf("beside a hijacked connection: %q, want 429", line)
	}
	conn.Close()
	ask()
	select {
	case conn := <-hijacked:
		conn.Close()
	case <-time.After(20 * time.Second):
		t.Error("the slot is taken after the connection was closed")
	}
}

// What handlers write arrives whole, whichever way, through two limiters.
func TestWritesPassThroughTwoLimiters(t *testing.T) {
	writers := map[string]func(w gin.ResponseWriter){
		"Write":       func(w gin.ResponseWriter) { _, _ = w.Write([]byte("hello")) },
		"WriteString": func(w gin.ResponseWriter) { _, _ = w.WriteString("hello") },
		"ReadFrom":    func(w gin.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("hello")) },
		"Flush": func(w gin.ResponseWriter) {
			w.Flush()
			_, _ = w.WriteString("hel")
			w.Flush()
			_ = http.NewResponseController(w).Flush()
			_, _ = w.WriteString("lo")
		},
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			outer, inner := gate(t, one), gate(t, one)
			srv := serve(t, ginlimit.Middleware(httplimit.Gate(outer)), ginlimit.Middleware(httplimit.Gate(inner)), func(c *gin.Context) {
				c.Writer.WriteHeader(http.StatusUnauthorized)
				write(c.Writer)
				if c.Writer.Status() != http.StatusUnauthorized || c.Writer.Size() != 5 || !c.Writer.Written() {
					t.Errorf("the writer says status %d, size %d, written %t", c.Writer.Status(), c.Writer.Size(), c.Writer.Written())
				}
			})
			for range 3 {
				if status, body := get(t, srv); status != http.StatusUnauthorized || body != "hello" {
					t.Errorf("got %d %q", status, body)
				}
			}
		})
	}
}

// A refused request reaches no handler, and its answer is whole.
func TestRefusedRequestIsAborted(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(1))
	calls := 0
	srv := serve(t, ginlimit.Middleware(httplimit.Limit(lim, httplimit.PathValue("name"))), func(c *gin.Context) {
		calls++
		c.String(http.StatusOK, "hello")
	})
	get(t, srv)
	if status, body := get(t, srv); status != http.StatusTooManyRequests || !strings.Contains(body, "used up") || calls != 1 {
		t.Errorf("got %d %q after %d calls", status, body, calls)
	}
	if lim.Peek(context.Background(), "x").OK {
		t.Error("it was not counted under its path value")
	}
}
