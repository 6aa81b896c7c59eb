//go:build unix

package serve

import (
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const unaskedRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: login, match: GET /api/things, per: customer, limits: { rate: 5/hour, algorithm: sliding_log, count_rejected: true }, on_store_failure: local }
  - { name: api, match: GET /healthz, per: customer, limits: { rate: 100/hour, algorithm: token_bucket }, on_store_failure: deny }
`

const (
	unaskedLine = "the store cannot be asked about a rule"
	askedLine   = "the store can be asked about the rule again"
)

// TestRuleThatCannotBeAsked forbids a command that one rule needs, and puts something else
// under a key of it: that rule falls back, the others do not, and health, log and metrics
// say so.
func TestRuleThatCannotBeAsked(t *testing.T) {
	server := testdep.Redis(t)
	server.Do("ACL", "SETUSER", "tidegate", "on", ">secret", "~*", "+@all", "-rpush")
	w := newSandbox(t, testdep.Command(t), "rules.yaml", unaskedRules)
	s := w.serveRedis("redis://tidegate:secret@"+server.Addr, patientStore)
	gateway, admin := s.ready()
	passed := 0
	for range 60 {
		if got, _ := w.get(once, gateway+"/api/things?customer=ann"); got == http.StatusOK {
			passed++
		}
		if got, _ := w.get(once, gateway+"/healthz?customer=ann"); got != http.StatusOK {
			t.Fatalf("another rule is answered %d", got)
		}
	}
	if passed != 5 {
		t.Errorf("%d of 5 admitted by the fallback", passed)
	}
	h := w.health(admin)
	if h.Status != "partial" || len(h.Unasked) != 1 || h.Unasked[0].Rule != "login" || !strings.Contains(h.Unasked[0].Why, "the user needs to") {
		t.Errorf("health is %+v", h)
	}
	if got, body := w.get(once, admin+"/readyz"); got != http.StatusOK || !strings.Contains(body, "cannot be asked about every rule") {
		t.Errorf("/readyz answers %d: %s", got, body)
	}
	_, page := w.get(once, admin+"/metrics")
	for _, want := range []string{`tidegate_store_state{state="partial"} 1`, `tidegate_store_unasked_total{rule="login"}`, `tidegate_store_fallback_total{mode="local",verdict="admitted"} 5`} {
		if !strings.Contains(page, want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	server.Do("ACL", "SETUSER", "tidegate", "+rpush")
	w.until("it can be asked about again", func() bool {
		w.get(once, gateway+"/api/things?customer=ann")
		return w.health(admin).Status == "ok"
	})
	s.await(1, askedLine)
	if n := strings.Count(s.logText(), unaskedLine); n != 1 {
		t.Errorf("the log tells %d times, want once", n)
	}
	if got, _ := w.get(once, gateway+"/api/things?customer=ann"); got != http.StatusTooManyRequests {
		t.Errorf("who used everything up meanwhile is answered %d", got)
	}
	server.Do("SET", "tg:api:{customer=bob}", "hello")
	for range 30 {
		if got, _ := w.get(once, gateway+"/healthz?customer=bob"); got != http.StatusServiceUnavailable {
			t.Fatalf("a key that holds something else is answered %d, want 503 as the rule says", got)
		}
		if got, _ := w.get(once, gateway+"/healthz?customer=carl"); got != http.StatusOK {
			t.Fatalf("another key is answered %d", got)
		}
	}
	if h := w.health(admin); h.Status != "partial" || len(h.Unasked) != 1 || h.Unasked[0].Rule != "api" {
		t.Errorf("health is %+v", h)
	}
}

// TestConnectionOfTheWrongKind says at the start and in health what to do about it.
func TestConnectionOfTheWrongKind(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", unaskedRules)
	s := w.serveRedis("rediss://" + server.Addr)
	gateway, admin := s.ready()
	w.until("health says what it is", func() bool {
		w.get(once, gateway+"/api/things?customer=ann")
		h := w.health(admin)
		return h.Status == "degraded" && strings.Contains(h.Why, "does not speak TLS")
	})
	w.until("the log says so", func() bool { return strings.Contains(s.logText(), "if it does not speak TLS, use redis://") })
}

// TestHeartbeatsAreForbidden is about the list of instances alone: requests go on.
func TestHeartbeatsAreForbidden(t *testing.T) {
	server := testdep.Redis(t)
	server.Do("ACL", "SETUSER", "tidegate", "on", ">secret", "~*", "+@all", "-zadd")
	w := newSandbox(t, testdep.Command(t), "rules.yaml", unaskedRules)
	s := w.serveRedis("redis://tidegate:secret@"+server.Addr, patientStore)
	gateway, admin := s.ready()
	w.until("health says so", func() bool {
		h := w.health(admin)
		return h.Status == "partial" && len(h.Unasked) == 1 && h.Unasked[0].Rule == "instances"
	})
	if got, _ := w.get(once, gateway+"/healthz?customer=ann"); got != http.StatusOK {
		t.Errorf("`deny` is answered %d by a store that works", got)
	}
	if strings.Contains(s.logText(), troubleLine) {
		t.Error("the log says that the store does not answer")
	}
}
