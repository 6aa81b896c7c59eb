//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/admin"
	"tidegate.dev/tidegate/internal/testdep"
)

const redisRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: few, match: GET /api/things, per: customer, limits: 40/hour }
  - { name: open, match: GET /healthz, per: customer, limits: 1/hour, on_store_failure: allow }
  - { name: closed, match: "GET /{$}", per: customer, limits: 1000/hour, on_store_failure: deny }
`

// anyPorts lets the system choose.
var anyPorts = []string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0"}

// serveRedis starts a gateway whose counters are in Redis.
func (w *world) serveRedis(url string, args ...string) *serving {
	w.Helper()
	w.Setenv("TIDEGATE_STORE_REDIS", url)
	return w.serve("", nil, append(anyPorts, args...)...)
}

// until polls.
func (w *world) until(what string, f func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("still not: %s", what)
		}
	}
}

func (w *world) health(address string) (h admin.Health) {
	w.Helper()
	status, body := w.get(once, address+"/healthz")
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != http.StatusOK {
		w.Fatalf("/healthz answers %d: %s", status, body)
	}
	return h
}

const (
	troubleLine = "the store does not answer: on_store_failure of each rule decides until it does"
	wellLine    = "the store answers again"
)

func TestServeRedis(t *testing.T) {
	bin := built(t)
	for name, f := range map[string]func(*testing.T, string){
		"shared": testRedisShared, "down at the start": testRedisDown, "password": testRedisPassword, "upgrade": testRedisUpgrade,
	} {
		t.Run(name, func(t *testing.T) { f(t, bin) })
	}
}

// Two gateways admit together what one limit says, not one more or less; what one of
// them forgets, the other has forgotten.
func testRedisShared(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newWorld(t, bin, "rules.yaml", redisRules)
	var gateways, admins [2]string
	for i := range gateways {
		gateways[i], admins[i] = w.serveRedis("redis://" + server.Addr).ready()
	}
	w.until("both are counted", func() bool {
		return w.health(admins[0]).Instances == 2 && w.health(admins[1]).Instances == 2
	})
	var admitted, refused atomic.Int64
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for range 15 {
				switch got, _ := w.get(once, gateways[i%2]+"/api/things?customer=acme"); got {
				case http.StatusOK:
					admitted.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					t.Errorf("answered %d", got)
				}
			}
		})
	}
	clients.Wait()
	if admitted.Load() != 40 || refused.Load() != 80 {
		t.Errorf("%d were admitted and %d refused, want 40 and 80", admitted.Load(), refused.Load())
	}
	if names := server.Do("KEYS", "tg:few:*"); !strings.HasPrefix(names, "tg:few:{customer=acme}") {
		t.Errorf("Redis has the keys %q", names)
	}
	get := func(verb, server string) string {
		out, _ := keys(t, nil, exitOK, verb, "--server", server, "--as", "customer=acme", "--rule", "few")
		return out
	}
	for _, a := range admins {
		if out := get("get", a); !strings.Contains(out, "0 of 40") || !strings.Contains(out, "refused for") {
			t.Errorf("tidegate keys get:\n%s", out)
		}
	}
	if out := get("reset", admins[1]); !strings.Contains(out, "40 of 40") {
		t.Errorf("tidegate keys reset:\n%s", out)
	}
	// The other one may remember a refusal, for a second.
	for _, g := range gateways {
		w.until("who was reset is admitted", func() bool {
			got, _ := w.get(once, g+"/api/things?customer=acme")
			return got == http.StatusOK
		})
	}
}

// Redis is killed and comes back empty: requests are answered all the time, as each
// rule says.
func TestTrap11LostRedisIsNobodysError(t *testing.T) {
	server := testdep.Redis(t)
	w := newWorld(t, built(t), "rules.yaml", "instances: 4\n"+redisRules)
	s := w.serveRedis("redis://"+server.Addr, "--store.deadline=250ms") // as long as this machine may take
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
	h := w.health(admin)
	if h.Why == "" || h.Since.IsZero() || time.Since(h.Since) > time.Minute {
		t.Errorf("health is %+v", h)
	}
	if got, body := w.get(once, admin+"/readyz"); got != http.StatusOK || !strings.Contains(body, "the store is degraded") {
		t.Errorf("/readyz answers %d: %s", got, body)
	}
	if _, err := keys(t, nil, exitFound, "reset", "--server", admin, "--as", "customer=acme"); !strings.Contains(err, "could not forget") {
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
		out, _ := keys(t, nil, exitOK, "get", "--server", admin, "--as", "customer=new", "--rule", "few")
		return strings.Contains(out, "30 of 40")
	})
}

// Redis need not be there at the start.
func testRedisDown(t *testing.T, bin string) {
	server := testdep.Redis(t)
	server.Kill()
	w := newWorld(t, bin, "rules.yaml", redisRules+`
  - { name: hot, match: /hot, per: everyone, limits: { rate: 1000/second, burst: 5000, algorithm: token_bucket }, consistency: leased, on_partition: share }
  - { name: exact, match: /exact, per: everyone, limits: 10/second, consistency: { mode: strict, deny_cache: false } }
`)
	s := w.serveRedis("redis://" + server.Addr)
	gateway, admin := s.ready()
	s.await(1, "`consistency` of the rule `hot` does nothing here: leased is not built yet: the counters in Redis are shared strictly")
	s.await(1, "`on_partition` of the rule `hot` does nothing here: it is not built yet: a gateway that is cut off goes by on_store_failure")
	if strings.Contains(s.said(), "`exact`") {
		t.Error("`strict` is doubted, and it is what Redis is for")
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
	w := newWorld(t, bin, "rules.yaml", redisRules, "password", "s3cret\n", "right", "correct\n")
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
	if said := s.said(); strings.Contains(said, "s3cret") || strings.Count(said, "WRONGPASS") != 1 {
		t.Errorf("the log has the password, or does not tell once that it is wrong")
	}
	gateway, admin = w.serveRedis("redis://"+server.Addr, "--store.password_file=right").ready()
	if got, _ := w.get(once, gateway+"/?customer=acme"); got != http.StatusOK || w.health(admin).Status != "ok" {
		t.Errorf("with the right one: %d, %+v", got, w.health(admin))
	}
	s = w.serveRedis("redis://:correct@"+server.Addr, "--store.redis=redis://:s3cret@host:port:1")
	if code := s.end(); code != exitUsage || strings.Contains(s.said(), "s3cret") {
		t.Errorf("exits with %d", code)
	}
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// Reloads make no new client, and leak nothing.
func TestTrap6ReloadsMakeNoNewClient(t *testing.T) {
	server := testdep.Redis(t)
	w := newWorld(t, built(t), "rules.yaml", redisRules)
	gateway, admin := w.serveRedis("redis://" + server.Addr).ready()
	clients := func() int { return strings.Count(server.Do("CLIENT", "LIST"), "name=tidegate") }
	running := func() int {
		_, page := w.get(once, admin+"/metrics")
		n, err := strconv.Atoi(goroutines.FindStringSubmatch(page)[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	use := func() {
		for i := range 20 {
			w.get(once, fmt.Sprintf("%s/api/things?customer=%d", gateway, i))
		}
	}
	use()
	w.until("it is connected", func() bool { return clients() > 0 })
	had, ran := clients(), running()
	for i := range 50 {
		w.write("rules.yaml", strings.Replace(redisRules, "1000/hour", strconv.Itoa(2000+i)+"/hour", 1))
		w.until("the rules are reloaded", func() bool {
			_, body := w.get(once, admin+"/rules")
			return strings.Contains(body, fmt.Sprintf(`"reloads": %d,`, i+1))
		})
		w.get(once, gateway+"/api/things?customer=acme")
	}
	use()
	if now := clients(); now != had {
		t.Errorf("%d connections to Redis after 50 reloads, %d before", now, had)
	}
	// Those of a request that has just ended may still be there.
	w.until("its goroutines are gone", func() bool { return running() <= ran+5 })
}

// A successor takes over, and is one instance like its predecessor; whoever ends says so.
func testRedisUpgrade(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newWorld(t, bin, "rules.yaml", strings.Replace(redisRules, "40/hour", "3/hour", 1))
	s := w.serveRedis("redis://" + server.Addr)
	gateway, _ := s.ready()
	w.spend(gateway, "acme")
	w.until("it is in the roll", func() bool { return server.Do("ZCARD", "tg:nodes") == "1" })
	first := server.Do("ZRANGE", "tg:nodes", "0", "-1")
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != exitOK {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
	w.until("the successor is alone in the roll", func() bool {
		now := server.Do("ZRANGE", "tg:nodes", "0", "-1")
		return now != "" && now != first && !strings.Contains(now, "\n")
	})
	line := s.await(1, "upgraded: a successor took over, and this process ends with its last request")
	successor, err := os.FindProcess(int(line["successor"].(float64)))
	if err != nil {
		t.Fatal(err)
	}
	if err := successor.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("nobody is in the roll", func() bool { return server.Do("ZCARD", "tg:nodes") == "0" })
}
