package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// 20 wrong passwords at once: 5 reach the upstream. A right one costs nothing.
func TestLogin(t *testing.T) {
	const login = `
version: 1
rules:
  - { name: login, match: POST /login, per: [ip], limits: 5/15m, count: { status: [401, 403] } }
`
	const wrong = 20
	var reached, decided atomic.Int64
	all := make(chan bool) // closed when every wrong one has reached the upstream, or was refused
	decide := func() {
		if decided.Add(1) == wrong {
			close(all)
		}
	}
	g := before(t, login, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if word, _ := io.ReadAll(r.Body); string(word) != "right" {
			decide()
			<-all
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	try := func(word string) int {
		res, _ := do(t, newRequest(t, http.MethodPost, g.url+"/login", strings.NewReader(word)))
		return res.StatusCode
	}
	for range 10 {
		if got := try("right"); got != http.StatusOK {
			t.Fatalf("a right password: %d", got)
		}
	}
	reached.Store(0)
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for range wrong {
		wg.Go(func() {
			status := try("wrong")
			if status != http.StatusUnauthorized {
				decide()
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	wg.Wait()
	if n := reached.Load(); n != 5 || statuses[http.StatusUnauthorized] != 5 || statuses[http.StatusTooManyRequests] != 15 {
		t.Errorf("%d reached the upstream, answers %v; want 5, and 15 refused", n, statuses)
	}
}

const chat = `
version: 1
identify: { user: client header X-User }
rules:
  - name: chat
    match: POST /v1/chat
    per: user
    limits: 100/minute
    cost: { reserve: body.max_tokens, else: 100, min: 1, max: 1000, settle: response.body.usage.total_tokens }
`

// 5 calls at once that reserve 100 of 100: one passes, and its usage of 37 leaves
// 63, however the upstream tells it.
func TestChat(t *testing.T) {
	f := func(name, kind, coding string, left int64, parts ...string) {
		t.Helper()
		var reached atomic.Int64
		started, release := make(chan bool, 5), make(chan bool)
		g := before(t, chat, func(w http.ResponseWriter, r *http.Request) {
			reached.Add(1)
			if got := r.Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("%s: asked for %q", name, got)
			}
			started <- true
			<-release
			w.Header().Set("Content-Type", kind)
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		})
		call := func() (*http.Response, string) {
			r := newRequest(t, http.MethodPost, g.url+"/v1/chat", strings.NewReader(`{"max_tokens": 100}`))
			r.Header = http.Header{"Content-Type": {"application/json"}, "X-User": {"ann"}, "Accept-Encoding": {"gzip"}}
			return do(t, r)
		}
		var passed, refused atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				switch res, body := call(); res.StatusCode {
				case http.StatusOK:
					passed.Add(1)
					if want := strings.Join(parts, ""); body != want {
						t.Errorf("%s: the client got %q, want %q", name, body, want)
					}
				case http.StatusTooManyRequests:
					refused.Add(1)
				}
			})
		}
		<-started
		soon(t, "four are refused", func() bool { return refused.Load() == 4 })
		close(release)
		wg.Wait()
		if passed.Load() != 1 || reached.Load() != 1 {
			t.Errorf("%s: %d passed, %d reached the upstream; want 1", name, passed.Load(), reached.Load())
		}
		r := newRequest(t, http.MethodPost, g.url+"/v1/chat", strings.NewReader(`{"max_tokens": 1}`))
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-User": {"ann"}}
		res, _ := do(t, r)
		want := fmt.Sprintf(`"chat";r=%d;t=`, left-1)
		if left == 0 {
			want = `"chat";r=0;t=`
		}
		if got := res.Header.Get("RateLimit"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: RateLimit %q, want %q", name, got, want)
		}
	}
	const usage = `{"id":"x","usage":{"prompt_tokens":30,"total_tokens":37}}`
	f("a document", "application/json; charset=utf-8", "", 63, usage)
	f("in parts", "application/json", "", 63, usage[:20], usage[20:])
	f("another kind of JSON", "application/vnd.x+json", "", 63, usage)
	f("a stream", "text/event-stream", "", 63,
		"data: {\"usage\":null}\n\n", "data: {\"usage\":{\"total_tokens\":12}}\n\n", "data: "+usage+"\n\n", "data: {\"usage\":null}\n\ndata: [DONE]\n\n")
	f("a stream in odd parts", "text/event-stream", "", 63, "event: x\r\nda", "ta: ", usage[:30], usage[30:]+"\r", "\n\r\nid: 1\n", "data: [DONE]")
	f("compressed", "application/json", "gzip", 0, usage) // the reserve stays
	f("no usage", "application/json", "", 0, `{"usage":{}}`)
	f("text", "text/plain", "", 0, usage)
	f("broken", "application/json", "", 0, usage[:40])
}
