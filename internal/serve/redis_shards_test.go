//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

// A gateway on shards names the one that is gone in its health, its log, its metrics and in
// the list of the fleet, and goes on counting on the others.
func testRedisShards(t *testing.T, bin string) {
	var servers []*testdep.RedisServer
	var list []string
	for i := range 3 {
		s := testdep.Redis(t)
		servers = append(servers, s)
		list = append(list, fmt.Sprintf("{ name: shard-%d, url: %q }", i+1, "redis://"+s.Addr))
	}
	w := newSandbox(t, bin, "rules.yaml", redisRules,
		"tidegate.yaml", "rules: rules.yaml\nstore: { deadline: 1s, shards: [ "+strings.Join(list, ", ")+" ] }\n")
	process := w.serve("", nil, anyPorts...)
	gateway, api := process.ready()
	customers := make([][]string, len(servers)) // by where they are counted
	for i := range 60 {
		name := fmt.Sprint("customer", i)
		if got, _ := w.get(once, gateway+"/api/things?customer="+name); got != http.StatusOK {
			t.Fatalf("%s is answered %d", name, got)
		}
		for j, s := range servers {
			if s.Do("KEYS", "tg:few:{customer="+name+"}*") != "" {
				customers[j] = append(customers[j], name)
			}
		}
	}
	if n := len(customers[0]) + len(customers[1]) + len(customers[2]); n != 60 || len(customers[0])*len(customers[1])*len(customers[2]) == 0 {
		t.Fatalf("customers are counted by %d, %d and %d", len(customers[0]), len(customers[1]), len(customers[2]))
	}
	servers[1].Kill()
	w.until("health names the shard", func() bool {
		h := w.health(api)
		return h.Status == "partial" && len(h.Servers) == 1 && h.Servers[0].Name == "shard-2"
	})
	for i, names := range customers {
		want := "store"
		if i == 1 {
			want = "local"
		}
		for _, name := range names {
			if got, _ := w.get(once, gateway+"/api/things?customer="+name); got != http.StatusOK {
				t.Errorf("%s of shard %d is answered %d", name, i+1, got)
			}
		}
		out, _ := w.keys(0, "get", "--server", api, "--as", "customer="+names[0], "--rule", "few")
		if local := strings.Contains(out, "(local)"); local != (want == "local") || !strings.Contains(out, "38 of 40") && want == "store" {
			t.Errorf("shard %d, to be decided by the %s:\n%s", i+1, want, out)
		}
	}
	_, page := w.get(once, api+"/metrics")
	for _, want := range []string{`tidegate_store_server_state{server="shard-2",state="degraded"} 1`, `tidegate_store_server_state{server="shard-1",state="ok"} 1`} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	_, body := w.get(once, api+"/fleet")
	var is admin.Fleet
	if err := json.Unmarshal([]byte(body), &is); err != nil || len(is.Servers) != 3 || is.Servers[1].Name != "shard-2" || is.Servers[1].Status != "degraded" || is.Servers[0].Status != "ok" {
		t.Errorf("/fleet answers %s, %v", body, err)
	}
	servers[1].Start()
	w.until("all is well again", func() bool { return w.health(api).Status == "ok" })
	for _, want := range []string{"a server of the store does not answer", "a server of the store answers again"} {
		if n := strings.Count(process.logText(), want); n != 1 {
			t.Errorf("the log says %d times: %s", n, want)
		}
	}
}
