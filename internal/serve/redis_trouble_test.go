//go:build unix

package serve

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Redis is killed and comes back empty: requests are answered all the time, as each
// rule says.
func TestTrap11LostRedisIsNobodysError(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", "instances: 4\n"+redisRules)
	s := w.serveRedis("redis://"+server.Addr, patientStore)
	gateway, admin := s.ready()
	ask := func(path, customer string) int {
		t.Helper()
		got, _ := w.get(once, gateway+path+"?customer="+customer)
		return got
	}
	if got := ask("/", "acme"); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	if h := w.health(admin); h.Status != "ok" || h.Instances != 4 { // as the rules say
		t.Errorf("health is %+v", h)
	}
	for range 40 {
		ask("/api/things", "acme")
	}
	// A refusal is no failure: `allow` does not look at it again.
	if first, second := ask("/healthz", "twice"), ask("/healthz", "twice"); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Errorf("under a limit of one, asked twice: %d and %d", first, second)
	}
	server.Kill()
	w.until("it is degraded", func() bool {
		if got := ask("/healthz", "acme"); got != http.StatusOK {
			t.Fatalf("`allow` is answered %d", got)
		}
		return w.health(admin).Status == "degraded"
	})
	if got := ask("/api/things", "acme"); got != http.StatusTooManyRequests {
		t.Errorf("who had used up everything is answered %d: an outage refills nobody", got)
	}
	if got := ask("/", "acme"); got != http.StatusServiceUnavailable {
		t.Errorf("`deny` is answered %d", got)
	}
	passed := 0
	for range 40 {
		switch got := ask("/api/things", "new"); got {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			t.Errorf("`local` is answered %d", got)
		}
	}
	if passed != 10 {
		t.Errorf("`local` admits %d, want a fourth of 40", passed)
	}
	if got, why := w.keys(0, "get", "--server", admin, "--rule", "few", "--as", "customer=new"); !strings.Contains(got, "(local)") || !strings.Contains(why, "the store does not answer") {
		t.Errorf("local counts are shown as those of Redis:\n%s%s", got, why)
	}
	h := w.health(admin)
	if h.Why == "" || h.Since.IsZero() || time.Since(h.Since) > time.Minute {
		t.Errorf("health is %+v", h)
	}
	if got, body := w.get(once, admin+"/readyz"); got != http.StatusOK || !strings.Contains(body, "the store is degraded") {
		t.Errorf("/readyz answers %d: %s", got, body)
	}
	if _, err := w.keys(1, "reset", "--server", admin, "--as", "customer=acme"); !strings.Contains(err, "could not forget") {
		t.Errorf("reset says %q", err)
	}
	if _, page := w.get(once, admin+"/metrics"); !strings.Contains(page, `tidegate_store_state{state="degraded"} 1`) || !strings.Contains(page, `tidegate_instances 4`) {
		t.Error("metrics do not tell")
	}
	server.Start()
	w.until("it is well again", func() bool { return w.health(admin).Status == "ok" })
	if got := ask("/", "acme"); got != http.StatusOK {
		t.Errorf("`deny` is answered %d", got)
	}
	s.await(1, wellLine)
	if n := len(s.lines(troubleLine)); n != 1 {
		t.Errorf("the log tells %d times of the trouble", n)
	}
	w.until("what was admitted meanwhile is charged", func() bool {
		out, _ := w.keys(0, "get", "--server", admin, "--as", "customer=new", "--rule", "few")
		return strings.Contains(out, "30 of 40")
	})
}

// Redis need not be there at the start.
func testRedisDown(t *testing.T, bin string) {
	server := testdep.Redis(t)
	server.Kill()
	w := newSandbox(t, bin, "rules.yaml", redisRules+`
  - { name: hot, match: /hot, per: everyone, limits: 1000/second, consistency: eventual, on_partition: share }
  - { name: ahead, match: /exact, per: everyone, limits: 1000/second, consistency: leased }
  - { name: parts, match: /exact, per: everyone, limits: 1000/second, consistency: split }
  - { name: exact, match: /exact, per: everyone, limits: 10/second, consistency: { mode: strict, deny_cache: false } }
`)
	s := w.serveRedis("redis://" + server.Addr)
	gateway, admin := s.ready()
	s.await(1, "`on_partition` of the rule `hot` does nothing here: it is about fleets in several regions, and there are no `store.regions`")
	for _, rule := range []string{"exact", "ahead", "parts"} {
		if strings.Contains(s.logText(), "`"+rule+"`") {
			t.Errorf("the consistency of %s is doubted, and it is what Redis is for", rule)
		}
	}
	if got, _ := w.get(once, gateway+"/api/things?customer=acme"); got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
	s.await(1, troubleLine) // asked or not
	if h := w.health(admin); h.Status != "degraded" || h.Why == "" {
		t.Errorf("health is %+v", h)
	}
	server.Start()
	s.await(1, wellLine)
}

// A wrong password is told once, however many requests there are, and it is not shown.
func testRedisPassword(t *testing.T, bin string) {
	server := testdep.Redis(t)
	server.Do("CONFIG", "SET", "requirepass", "correct")
	w := newSandbox(t, bin, "rules.yaml", redisRules, "password", "s3cret\n", "right", "correct\n")
	s := w.serveRedis("redis://"+server.Addr, "--store.password_file=password")
	gateway, admin := s.ready()
	s.await(1, troubleLine)
	for range 100 {
		if got, _ := w.get(once, gateway+"/healthz?customer=acme"); got != http.StatusOK {
			t.Fatalf("answered %d", got)
		}
	}
	if h := w.health(admin); !strings.Contains(h.Why, "password is wrong") {
		t.Errorf("health is %+v", h)
	}
	if printed := s.logText(); strings.Contains(printed, "s3cret") || strings.Count(printed, "WRONGPASS") != 1 {
		t.Errorf("the log has the password, or does not tell once that it is wrong")
	}
	gateway, admin = w.serveRedis("redis://"+server.Addr, "--store.password_file=right").ready()
	w.until("the right one is taken", func() bool { // a busy machine may miss the first deadline
		got, _ := w.get(once, gateway+"/?customer=acme")
		return got == http.StatusOK && w.health(admin).Status == "ok"
	})
	s = w.serveRedis("redis://:correct@"+server.Addr, "--store.redis=redis://:s3cret@host:port:1")
	if code := s.end(); code != 2 || strings.Contains(s.logText(), "s3cret") {
		t.Errorf("exits with %d", code)
	}
}
