//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
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

// patientStore is a deadline that a busy machine does not miss, for tests that count what Redis admits.
const patientStore = "--store.deadline=10s"

// serveRedis starts a gateway whose counters are in Redis.
func (w *sandbox) serveRedis(url string, args ...string) *serving {
	w.Helper()
	w.env = append(w.env, "TIDEGATE_STORE_REDIS="+url)
	return w.serve("", nil, append(anyPorts, args...)...)
}

// until is testdep.Eventually.
func (w *sandbox) until(what string, f func() bool) {
	w.Helper()
	testdep.Eventually(w, what, f)
}

func (w *sandbox) health(address string) (h admin.Health) {
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
	bin := testdep.Command(t)
	for name, f := range map[string]func(*testing.T, string){
		"shared": testRedisShared, "shards": testRedisShards, "regions": testRedisRegions, "down at the start": testRedisDown, "password": testRedisPassword, "upgrade": testRedisUpgrade, "instances": testRedisInstances, "series": testRedisSeries,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, bin)
		})
	}
}

// Two gateways admit together what one limit says, not one more or less; what one of
// them forgets, the other has forgotten.
func testRedisShared(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", redisRules)
	var gateways, admins [2]string
	for i := range gateways {
		gateways[i], admins[i] = w.serveRedis("redis://"+server.Addr, patientStore).ready()
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
		out, _ := w.keys(0, verb, "--server", server, "--as", "customer=acme", "--rule", "few")
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

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// Reloads make no new client, and leak nothing.
func TestTrap6ReloadsMakeNoNewClient(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", redisRules)
	gateway, admin := w.serveRedis("redis://"+server.Addr, patientStore).ready()
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
	// It need not have opened all that one client has, and fifty clients would have fifty more.
	if now := clients(); now < had || now > had+5 {
		t.Errorf("%d connections to Redis after 50 reloads, %d before", now, had)
	}
	// Those of a request that has just ended may still be there.
	w.until("its goroutines are gone", func() bool { return running() <= ran+5 })
}

// A successor takes over, and is one instance like its predecessor; whoever ends says so.
func testRedisUpgrade(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", strings.Replace(redisRules, "40/hour", "3/hour", 1))
	s := w.serveRedis("redis://"+server.Addr, patientStore)
	gateway, _ := s.ready()
	w.spend(gateway, "acme")
	w.until("it is in the list", func() bool { return server.Do("ZCARD", "tg:nodes") == "1" })
	first := server.Do("ZRANGE", "tg:nodes", "0", "-1")
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
	w.until("the successor is alone in the list", func() bool {
		now := server.Do("ZRANGE", "tg:nodes", "0", "-1")
		return now != "" && now != first && !strings.Contains(now, "\n")
	})
	line := s.await(1, upgradedLine)
	successor, err := os.FindProcess(int(line["successor"].(float64)))
	if err != nil {
		t.Fatal(err)
	}
	if err := successor.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.until("nobody is in the list", func() bool { return server.Do("ZCARD", "tg:nodes") == "0" })
}

// The rules say how many instances there are, and a reload is enough to say otherwise.
func testRedisInstances(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", "instances: 4\n"+redisRules)
	_, admin := w.serveRedis("redis://" + server.Addr).ready()
	for _, change := range []struct {
		top  string
		want int
	}{{"instances: 4\n", 4}, {"instances: 7\n", 7}, {"", 1}, {"instances: 2\n", 2}} {
		w.write("rules.yaml", change.top+redisRules)
		w.until(strconv.Itoa(change.want)+" instances", func() bool { return w.health(admin).Instances == change.want })
	}
}

// Of two gateways on one Redis, each shows the decisions of both, and those that it made itself if it
// is asked for these.
func testRedisSeries(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", redisRules)
	url := "redis://" + testdep.Redis(t).Addr
	all := 0
	for i, requests := range []int{3, 5} {
		name := fmt.Sprint("web-", i)
		gateway, at := w.serveRedis(url, "--rules=rules.yaml", "--store.instance="+name, patientStore).ready()
		for range requests {
			if status, body := w.get(once, gateway+"/api/things?customer=acme"); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		}
		all += requests
		shows := func(query string, nodes, want int) bool {
			_, body := w.get(once, at+"/series?rule=few&outcome=ok"+query)
			var is admin.Series
			if err := json.Unmarshal([]byte(body), &is); err != nil || len(is.Lines) > 1 {
				t.Fatalf("%v: %s", err, body)
			}
			sum := 0
			for _, l := range is.Lines {
				for _, n := range l.Counts {
					sum += int(n)
				}
			}
			if sum > want {
				t.Fatalf("%d decisions, want %d: %s", sum, want, body)
			}
			return sum == want && len(is.Nodes) == nodes && slices.Contains(is.Nodes, name) && len(is.Missing) == 0
		}
		w.until(name+" shows what it decided", func() bool { return shows("&fleet=false", 1, requests) })
		w.until(name+" shows what all decided", func() bool { return shows("&step=1", i+1, all) })
	}
}
