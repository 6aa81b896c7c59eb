package desk_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/checkapi"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// result is the answer to a question, as every door gives it.
type result struct {
	decision, rule   string
	limit, remaining int64
	retry, reset     time.Duration
	ticket           string
}

// numbers are those that do not differ from call to call.
func (r result) numbers() string {
	return fmt.Sprintf("%s by %s, %d of %d", r.decision, r.rule, r.remaining, r.limit)
}

// door is a way to ask. Each takes the same words: check, or acquire or reserve, and how.
type door interface {
	ask(t *testing.T, command, method, path, ip string, cost int64, report bool) result
	settle(t *testing.T, ticket, field string, value int) bool
	release(t *testing.T, ticket string) bool
}

// overHTTP asks the check API.
type overHTTP struct{ handler http.Handler }

func (d overHTTP) post(t *testing.T, verb string, question map[string]any, answer any) int {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/v1/"+verb, strings.NewReader(string(body)))
	r.RemoteAddr = "127.0.0.1:40000"
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
		t.Fatalf("%s: %d %s", body, w.Code, w.Body)
	}
	return w.Code
}

func (d overHTTP) ask(t *testing.T, command, method, path, ip string, cost int64, report bool) result {
	t.Helper()
	var got struct {
		Decision, Rule, Ticket string
		Limit, Remaining       int64
		Retry                  float64 `json:"retry_after"`
		Reset                  float64 `json:"reset_after"`
	}
	question := map[string]any{"method": method, "path": path, "ip": ip, "cost": cost}
	if report {
		question["report"] = true
	}
	if status := d.post(t, command, question, &got); status != http.StatusOK {
		t.Fatalf("%s %v: %d", command, question, status)
	}
	seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	return result{got.Decision, got.Rule, got.Limit, got.Remaining, seconds(got.Retry), seconds(got.Reset), got.Ticket}
}

func (d overHTTP) settle(t *testing.T, ticket, field string, value int) bool {
	t.Helper()
	return d.post(t, "report", map[string]any{"ticket": ticket, field: value}, new(any)) == http.StatusOK
}

func (d overHTTP) release(t *testing.T, ticket string) bool {
	t.Helper()
	return d.post(t, "release", map[string]any{"ticket": ticket}, new(any)) == http.StatusOK
}

// overRESP speaks the protocol of Redis.
type overRESP struct {
	conn net.Conn
	in   *bufio.Reader
}

func (d overRESP) do(t *testing.T, line string) []string {
	t.Helper()
	if _, err := io.WriteString(d.conn, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return d.read(t)
}

func (d overRESP) read(t *testing.T) (values []string) {
	t.Helper()
	line, err := d.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '*':
		for range n {
			values = append(values, d.read(t)...)
		}
		return values
	case '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(d.in, text); err != nil {
			t.Fatal(err)
		}
		return []string{string(text[:n])}
	case '-':
		t.Fatal(line)
	}
	return []string{strings.TrimSpace(line[1:])}
}

func (d overRESP) ask(t *testing.T, command, method, path, ip string, cost int64, report bool) result {
	t.Helper()
	line := fmt.Sprintf("TG.%s METHOD %s PATH %s IP %s COST %d", strings.ToUpper(command), method, path, ip, cost)
	if report {
		line += " REPORT"
	}
	values, got := d.do(t, line), map[string]string{}
	for i := 0; i < len(values); i += 2 {
		got[values[i]] = values[i+1]
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(got[name], 10, 64)
		if err != nil {
			t.Fatalf("%s of %v: %v", name, got, err)
		}
		return n
	}
	wait := func(name string) time.Duration { return time.Duration(max(0, number(name))) * time.Millisecond }
	return result{got["decision"], got["rule"], max(0, number("limit")), max(0, number("remaining")), wait("retry_after"), wait("reset_after"), got["ticket"]}
}

func (d overRESP) settle(t *testing.T, ticket, field string, value int) bool {
	t.Helper()
	return d.do(t, fmt.Sprintf("TG.SETTLE %s %s %d", ticket, strings.ToUpper(field), value))[0] == "1"
}

func (d overRESP) release(t *testing.T, ticket string) bool {
	t.Helper()
	return d.do(t, "TG.RELEASE "+ticket)[0] == "1"
}

// doorsTo are both doors to a store, and a proxy that asks forward-auth for POST requests.
func doorsTo(t *testing.T, store tidegate.Store, src string) (doors map[string]door, forwardAuth func(path, ip string) *httptest.ResponseRecorder) {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+src), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := desk.New(tidegate.NewGate(set, store))
	api := checkapi.New(checkapi.Options{
		Desk: d, Deadline: time.Minute,
		HTTP: httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}},
	})
	server := resp.New(resp.Options{Desk: d})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return map[string]door{"check": overHTTP{api}, "resp": overRESP{conn, bufio.NewReader(conn)}}, func(path, ip string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/v1/forward-auth", nil)
		r.RemoteAddr = "127.0.0.1:40000"
		r.Header = http.Header{"X-Original-Method": {"POST"}, "X-Original-Uri": {path}, "X-Forwarded-For": {ip}}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w
	}
}

// eachStore runs f on counters in memory and in Redis.
func eachStore(t *testing.T, f func(t *testing.T, store tidegate.Store)) {
	t.Run("memory", func(t *testing.T) { f(t, queue.New(chain.Adapt(memory.New()))) })
	t.Run("redis", func(t *testing.T) {
		store, err := fleet.Open("redis://"+testdep.Redis(t).Addr, fleet.Options{Deadline: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		f(t, store)
	})
}
