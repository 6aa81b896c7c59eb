package checkapi

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/store/memory"
)

// cookbook returns a rule file of docs/cookbook, without the version that parseRules writes.
func cookbook(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/cookbook/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "version: 1\n", "", 1)
}

// Workers that acquire, deliver, report and release, as docs/cookbook.md says, have what the rules of
// webhooks promise: slots come back with the release, and reported failures leave the endpoint alone.
func TestWebhooksOfTheCookbook(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	store := memory.Open(memory.Config{Now: func() time.Time { return now }})
	s := serverOn(t, queue.New(chain.Adapt(store)), cookbook(t, "webhooks"), nil)
	acquire := func(endpoint string) answer {
		t.Helper()
		return post(t, s, "acquire", fmt.Sprintf(`{"method":"POST","path":"/deliveries","as":{"endpoint":%q,"customer":"acme"},"report":true}`, endpoint))
	}
	end := func(ticket string, status int) {
		t.Helper()
		for verb, body := range map[string]string{
			"report":  fmt.Sprintf(`{"ticket":%q,"status":%d}`, ticket, status),
			"release": fmt.Sprintf(`{"ticket":%q}`, ticket),
		} {
			if w := ask(t, s, "POST", "/v1/"+verb, body); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", verb, w.Code, w.Body)
			}
		}
	}

	var held []string
	for range 5 {
		held = append(held, acquire("slow").Ticket)
	}
	if a := acquire("slow"); a.Decision != "limited" || a.Rule != "at-once" {
		t.Errorf("the sixth at once: %+v", a)
	}
	if a := acquire("other"); a.Decision != "allowed" {
		t.Errorf("another endpoint: %+v", a)
	}
	end(held[0], 200)
	if a := acquire("slow"); a.Decision != "allowed" {
		t.Errorf("after a release: %+v", a)
	}

	for range 10 {
		end(acquire("paced").Ticket, 200)
	}
	const told = `{"decision":"limited","rule":"pace","limit":10,"remaining":0,"retry_after":0.1,"reset_after":1}` // as docs/cookbook.md has it
	w := ask(t, s, "POST", "/v1/acquire", `{"method":"POST","path":"/deliveries","as":{"endpoint":"paced","customer":"acme"},"report":true}`)
	if page, err := os.ReadFile("../../../docs/cookbook.md"); err != nil || strings.TrimSpace(w.Body.String()) != told || !strings.Contains(string(page), told) {
		t.Errorf("the eleventh in a second: %s %v", w.Body, err)
	}

	for i := range 36 { // five of nine are failures, so there are twenty
		now = now.Add(time.Second)
		a := acquire("failing")
		if a.Decision != "allowed" {
			t.Fatalf("delivery %d: %+v", i, a)
		}
		end(a.Ticket, []int{503, 200, 202, 429, 404, 410, 302, 408, 500}[i%9])
	}
	for range 3 {
		if a := acquire("failing"); a.Decision != "limited" || a.Rule != "failing" || a.RetryAfter != 600 {
			t.Errorf("after twenty failures: %+v", a)
		}
	}
	if a := acquire("other"); a.Decision != "allowed" {
		t.Errorf("another endpoint: %+v", a)
	}
	now = now.Add(10 * time.Minute)
	if a := acquire("failing"); a.Decision != "allowed" {
		t.Errorf("after ten minutes: %+v", a)
	}
}

// A proxy that asks about a call of gRPC, and passes its headers on, is told by the HTTP status: it would
// take 200 for an admission.
func TestForwardAuthOfGRPC(t *testing.T) {
	s := newServer(t, cookbook(t, "grpc"), nil)
	for i := range 7 {
		w := ask(t, s, "GET", "/v1/forward-auth", "", "X-Original-Method: POST", "X-Original-URI: /shop.v1.Orders/Export",
			"X-Forwarded-For: 203.0.113.9", "Content-Type: application/grpc")
		want := http.StatusNoContent
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if w.Code != want || w.Header().Get("Grpc-Status") != "" {
			t.Errorf("%d: %d %v", i, w.Code, w.Header())
		}
	}
}
