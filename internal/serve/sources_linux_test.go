package serve

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/rules/source/etcd"
	"tidegate.dev/tidegate/rules/source/redis"
)

// Real etcd, real Redis and an HTTP server change limits and the number of instances of three
// gateways under load: the new numbers hold on all of them soon, no request fails and nobody is
// refilled. What is bad is refused everywhere with one message; a source that is killed changes
// nothing; an instance that is cut off from it is shown as behind.
func TestRulesFromSources(t *testing.T) {
	bin := testdep.Command(t)
	for name, open := range map[string]func(*testing.T) ruleServer{
		"etcd": func(t *testing.T) ruleServer {
			server := testdep.Etcd(t)
			a, err := etcd.Open(etcd.Config{URL: "etcd://" + server.Addr + "/tidegate"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close() })
			return &archived{server, server.Addr, "etcd://%s/tidegate", a}
		},
		"redis": func(t *testing.T) ruleServer {
			server := testdep.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			a, err := redis.Open(redis.Config{URL: "redis://" + server.Addr})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.Close() })
			return &archived{server, server.Addr, "redis://%s#rules", a}
		},
		"http": func(t *testing.T) ruleServer {
			l := &longPoll{addr: "127.0.0.1:" + testdep.FreePort(t)}
			l.start()
			t.Cleanup(l.kill)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) { testRulesFrom(t, bin, open(t)) })
	}
}

// sourcedFleet is three gateways on one Redis that get their rules from one source.
type sourcedFleet struct {
	*sandbox
	t     *testing.T
	from  ruleServer
	way   *turnstile // to the source
	nodes []*serving
	gates []string
	admin []string
}

// serves waits until a gateway serves, or has given up: a busy machine may need longer than the ten
// seconds that a start waits for its rules.
func (f *sourcedFleet) serves(s *serving) bool {
	f.until("it serves, or has no rules", func() bool {
		return len(s.lines("serving")) > 0 || s.hasEnded() && strings.Contains(s.logText(), "there are no rules of")
	})
	return len(s.lines("serving")) > 0
}

func testRulesFrom(t *testing.T, bin string, from ruleServer) {
	from.publish(t, sourceRules(100, 3))
	f := &sourcedFleet{sandbox: newSandbox(t, bin), t: t, from: from, way: newTurnstile(t, from.at())}
	counters := "redis://" + testdep.Redis(t).Addr
	serve := func(name string) *serving {
		return f.serveRedis(counters, "--store.instance="+name, "--store.deadline=10s", "--rules="+from.url(f.way.addr), "--rules_source.copy=copy-"+name)
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		f.nodes = append(f.nodes, serve(name))
	}
	for i := range f.nodes {
		for tries := 1; tries < 5 && !f.serves(f.nodes[i]); tries++ {
			f.nodes[i] = serve(names[i])
		}
		gate, at := f.nodes[i].ready()
		f.gates, f.admin = append(f.gates, gate), append(f.admin, at)
	}
	f.until("all run the first rules", func() bool { is := f.rulesStatus(f.admin[0]); return is.Current && len(is.Instances) == 3 })
	stop := f.load()
	day := time.Now().UTC().YearDay()

	f.spends("few", "/api/things", 40, 40)
	f.eachSpends("shares", 6, 6)
	f.changes("a lower limit, more instances", 50, 6)
	f.spends("few, lowered", "/api/things", 30, 10)
	f.eachSpends("shares of more", 3, 3) // 18 of 60 are used, and each request is one of six
	f.refuses()
	f.changes("a higher limit, fewer instances", 80, 2)
	f.spends("few, raised", "/api/things", 60, 30)
	f.eachSpends("shares of fewer", 20, 12) // 36 of 60 are used
	f.sourceKilled()
	f.nodeCutOff()

	sent := stop()
	f.until("every request is counted", func() bool {
		return f.counted(f.admin[0]) >= sent || time.Now().UTC().YearDay() != day
	})
	sets := f.rulesHistory(f.admin[1])
	if len(sets) != 4 || !sets[0].InForce {
		t.Errorf("the history has %+v", sets)
	}
}

// load asks all gateways all the time; stop ends that, and returns how many requests there were.
func (f *sourcedFleet) load() (stop func() (sent int64)) {
	rate, err := strconv.Atoi(os.Getenv("TIDEGATE_TEST_RATE")) // of make bench-sources
	if err != nil {
		rate = 600
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	var loads []*load
	begin := time.Now()
	for _, gate := range f.gates {
		l := &load{address: strings.TrimPrefix(gate, "http://"), rate: (rate + len(f.gates) - 1) / len(f.gates), conns: 8}
		loads = append(loads, l)
		l.volleys(ctx)
	}
	return func() (sent int64) {
		cancel()
		for _, l := range loads {
			l.clients.Wait()
			sent += l.sent.Load()
			if n := len(l.failures); n > 0 {
				f.t.Errorf("%d requests of %d failed, the first: %s", n, l.sent.Load(), l.failures[0])
			}
		}
		f.t.Logf("%d requests, %.0f a second of %d that were wanted", sent, float64(sent)/time.Since(begin).Seconds(), rate)
		return sent
	}
}

// spends asks n times, of all gateways in turn, and wants so many admitted.
func (f *sourcedFleet) spends(what, path string, n, want int) {
	f.t.Helper()
	admitted := 0
	for i := range n {
		if status, _ := f.get(once, f.gates[i%len(f.gates)]+path+"?customer=acme"); status != http.StatusTooManyRequests {
			admitted++
		}
	}
	if admitted != want {
		f.t.Errorf("%s: %d of %d are admitted, want %d", what, admitted, n, want)
	}
}

// eachSpends asks every gateway n times for its share, and wants so many admitted by each.
func (f *sourcedFleet) eachSpends(what string, n, want int) {
	f.t.Helper()
	for i, gate := range f.gates {
		admitted := 0
		for range n {
			if status, _ := f.get(once, gate+"/api/shares?customer=acme"); status != http.StatusTooManyRequests {
				admitted++
			}
		}
		if admitted != want {
			f.t.Errorf("%s: gateway %d admits %d of %d, want %d", what, i, admitted, n, want)
		}
	}
}

var policyQuota = regexp.MustCompile(`"few";q=(\d+);`)

// quota is what a gateway tells clients that the limit is.
func (f *sourcedFleet) quota(gate string) int {
	res, err := once.Get(gate + "/api/things?customer=probe")
	if err != nil {
		return -1
	}
	res.Body.Close()
	m := policyQuota.FindStringSubmatch(res.Header.Get("RateLimit-Policy"))
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// changes publishes other numbers, and measures until they hold on every gateway.
func (f *sourcedFleet) changes(what string, few, instances int) {
	f.t.Helper()
	begin := time.Now()
	f.from.publish(f.t, sourceRules(few, instances))
	f.holds(what, few, begin, f.gates)
	f.until("the status says so", func() bool {
		is := f.rulesStatus(f.admin[0])
		return is.Current && len(is.Instances) == 3 && !slices.ContainsFunc(is.Instances, func(one admin.InForce) bool { return one.Instances != instances })
	})
}

// holds waits until the gateways have the new limit, and tells how long after begin that was.
func (f *sourcedFleet) holds(what string, few int, begin time.Time, gates []string) {
	f.t.Helper()
	took := make([]time.Duration, len(gates))
	var all sync.WaitGroup
	for i, gate := range gates {
		all.Go(func() {
			for f.quota(gate) != few && time.Since(begin) < testTimeout {
				time.Sleep(2 * time.Millisecond)
			}
			took[i] = time.Since(begin)
		})
	}
	all.Wait()
	if slices.Max(took) >= testTimeout {
		f.t.Fatalf("%s: not on every gateway after %v", what, took)
	}
	f.t.Logf("%s: holds after %v", what, took)
}

// refuses publishes a bad set: nobody takes it, all say the same of it, and what was in force
// stays.
func (f *sourcedFleet) refuses() {
	f.t.Helper()
	was := f.statusOfAll(f.admin[1])
	f.from.publish(f.t, strings.Replace(sourceRules(70, 9), "60/day", "60/dy", 1))
	var is admin.RulesStatus
	f.until("all refuse it", func() bool {
		is = f.rulesStatus(f.admin[1])
		return f.known(&is) && len(is.Refusals) == 1 && strings.Join(is.Refusals[0].On, "") == "abc"
	})
	if m := is.Refusals[0].Message; !strings.Contains(m, "rules.yaml:7:") || !strings.Contains(m, "60/dy") {
		f.t.Errorf("the message is %s", m)
	}
	if code, out := f.rules("status", "--check", "--server", f.admin[2]); code != 1 || strings.Count(out, "60/dy") < 1 || strings.Count(out, "refused:") != 1 {
		f.t.Errorf("%d %s", code, out)
	}
	f.unchanged(&was, &is)
}

// statusOfAll returns a status in which no instance is missing, nor known by its heartbeat
// only, as one may be for a moment after it has changed its rules.
func (f *sourcedFleet) statusOfAll(at string) (is admin.RulesStatus) {
	f.t.Helper()
	f.until("all instances are seen", func() bool {
		is = f.rulesStatus(at)
		return f.known(&is)
	})
	return is
}

func (f *sourcedFleet) known(is *admin.RulesStatus) bool {
	unknown := slices.ContainsFunc(is.Instances, func(one admin.InForce) bool { return one.Since.IsZero() })
	return len(is.Instances) == len(f.nodes) && !unknown
}

// unchanged wants the same rules in force since the same time.
func (f *sourcedFleet) unchanged(was, is *admin.RulesStatus) {
	f.t.Helper()
	for i := range was.Instances {
		if x, y := was.Instances[i], is.Instances[i]; x.Hash != y.Hash || !x.Since.Equal(y.Since) || x.Instances != y.Instances {
			f.t.Errorf("%s runs %s since %s, and ran %s since %s", y.Name, y.Hash, y.Since, x.Hash, x.Since)
		}
	}
}

// sourceKilled kills the source and starts it again: everybody says so, and nothing else happens.
func (f *sourcedFleet) sourceKilled() {
	f.t.Helper()
	was := f.statusOfAll(f.admin[0])
	f.from.kill()
	f.until("all miss the source", func() bool {
		is := f.rulesStatus(f.admin[0])
		return len(is.Instances) == 3 && !slices.ContainsFunc(is.Instances, func(one admin.InForce) bool { return len(one.Behind) == 0 })
	})
	f.holds("without the source", 80, time.Now(), f.gates)
	f.from.start()
	var is admin.RulesStatus
	f.until("all have the source again", func() bool {
		is = f.rulesStatus(f.admin[0])
		return is.Current && f.known(&is)
	})
	f.unchanged(&was, &is)
}

// nodeCutOff keeps one gateway from the source while that changes.
func (f *sourcedFleet) nodeCutOff() {
	f.t.Helper()
	f.way.lock(f.nodes[2].cmd.Process.Pid)
	f.from.publish(f.t, sourceRules(90, 2))
	begin := time.Now()
	f.holds("for two of three", 90, begin, f.gates[:2])
	f.until("the third is behind", func() bool {
		why := strings.Join(f.statusOfAll(f.admin[0]).Instances[2].Behind, "; ")
		return strings.Contains(why, "in force elsewhere") && strings.Contains(why, "has not answered")
	})
	if code, out := f.rules("status", "--check", "--server", f.admin[1]); code != 1 || !strings.Contains(out, "warning: c is behind") || strings.Contains(out, "warning: a") {
		f.t.Errorf("%d %s", code, out)
	}
	if got := f.quota(f.gates[2]); got != 80 {
		f.t.Errorf("the third has %d", got)
	}
	f.way.lock(0)
	f.holds("for the third, that is back", 90, time.Now(), f.gates)
	f.until("all are current", func() bool { return f.rulesStatus(f.admin[0]).Current })
}
