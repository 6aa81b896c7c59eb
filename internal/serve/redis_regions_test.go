//go:build unix

package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

const regionRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: few, match: GET /api/things, per: customer, limits: 40/hour, consistency: eventual, on_partition: continue }
`

// Gateways of two regions share a limit. One region is told by its gateway, the other by
// tidegate region-sync; when nobody tells it any more, that shows.
func testRedisRegions(t *testing.T, bin string) {
	servers := [2]*testdep.RedisServer{testdep.Redis(t), testdep.Redis(t)}
	names := [2]string{"eu", "us"}
	w := newSandbox(t, bin, "rules.yaml", regionRules)
	var gateways, admins [2]string
	var logs [2]*serving
	for i, name := range names {
		other := names[1-i]
		if i == 0 {
			other += "=redis://" + servers[1].Addr
		}
		logs[i] = w.serve("", nil, append([]string{"--rules=rules.yaml", "--store.redis=redis://" + servers[i].Addr, "--store.region=" + name, "--store.regions=" + other}, anyPorts...)...)
		gateways[i], admins[i] = logs[i].ready()
		if text := logs[i].logText(); strings.Contains(text, "does nothing here") {
			t.Errorf("%s says:\n%s", name, text)
		}
	}
	sync := exec.Command(bin, "region-sync", "--store.redis=redis://"+servers[1].Addr, "--store.region=us", "--store.regions=eu=redis://"+servers[0].Addr)
	if err := sync.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sync.Process.Kill()
		_ = sync.Wait()
	}()
	for range 15 {
		for i := range gateways {
			if got, _ := w.get(once, gateways[i]+"/api/things?customer=acme"); got != http.StatusOK {
				t.Fatalf("%s answers %d", names[i], got)
			}
		}
	}
	for i := range gateways {
		w.until(names[i]+" knows what the other has counted", func() bool {
			got, _ := w.get(once, gateways[i]+"/api/things?customer=acme")
			return got == http.StatusTooManyRequests
		})
	}
	regions := func(i int) (all []admin.Region) {
		_, body := w.get(once, admins[i]+"/fleet")
		var is admin.Fleet
		if err := json.Unmarshal([]byte(body), &is); err != nil {
			t.Fatalf("/fleet answers %s: %v", body, err)
		}
		return is.Regions
	}
	for i := range names {
		w.until("regions hear of each other", func() bool {
			all := regions(i)
			return len(all) == 1 && all[0].Name == names[1-i] && all[0].Heard && !all[0].CutOff
		})
	}
	_, page := w.get(once, admins[0]+"/metrics")
	for _, want := range []string{`tidegate_region_cut_off{region="us"} 0`, `tidegate_region_lag_seconds{region="us"}`} {
		if !strings.Contains(page, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	_ = sync.Process.Kill()
	w.until("eu notices that us is cut off", func() bool {
		_, page := w.get(once, admins[0]+"/metrics")
		all := regions(0)
		return strings.Contains(page, `tidegate_region_cut_off{region="us"} 1`) && len(all) == 1 && all[0].CutOff
	})
	servers[1].Kill()
	w.until("eu says that it cannot tell us", func() bool {
		return strings.Contains(logs[0].logText(), fmt.Sprintf("%q:%q", "region", "us"))
	})
}
