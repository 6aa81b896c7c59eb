//go:build unix

package serve

import (
	"net/http"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const quotaRules = `version: 1
identify: { customer: query customer }
rules:
  - name: quota
    per: customer
    match: GET /healthz
    limits: 10/day
  - name: strict
    match: GET /api/things
    per: customer
    limits: 5/hour
    block: 15m
`

// Upgrades while Redis is away refill nobody, however many: neither a quota nor who is
// blocked.
func TestUpgradesInAnOutageRefillNobody(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", quotaRules)
	s := w.serveRedis("redis://"+server.Addr, patientStore)
	gateway, admin := s.ready()
	passed := func(path, customer string) (n int) {
		t.Helper()
		for range 12 {
			if got, _ := w.get(once, gateway+path+"?customer="+customer); got == http.StatusOK {
				n++
			}
		}
		return n
	}
	if got := passed("/healthz", "acme"); got != 10 {
		t.Fatalf("%d of a quota of 10", got)
	}
	if got := passed("/api/things", "bob"); got != 5 {
		t.Fatalf("%d of 5", got)
	}
	server.Kill()
	w.until("it is degraded", func() bool {
		_, _ = w.get(once, gateway+"/healthz?customer=other")
		return w.health(admin).Status == "degraded"
	})
	fresh := passed("/healthz", "fresh")
	pid := s.cmd.Process.Pid
	for upgrade := range 3 {
		if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		s.await(upgrade+2, "serving")
		pid = int(s.await(upgrade+1, upgradedLine)["successor"].(float64)) // also for who ends it with the test
		for customer, path := range map[string]string{"acme": "/healthz", "bob": "/api/things"} {
			if got := passed(path, customer); got != 0 {
				t.Errorf("%d more for %s after upgrade %d", got, customer, upgrade+1)
			}
		}
		fresh += passed("/healthz", "fresh")
	}
	if fresh != 10 {
		t.Errorf("%d admitted of a fresh quota of 10, over three upgrades", fresh)
	}
}
