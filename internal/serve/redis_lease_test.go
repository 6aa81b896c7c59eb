//go:build unix

package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const leaseRules = `version: 1
rules:
  - { name: renders, match: GET /slow, per: everyone, concurrency: { slots: 9, lease: 1s } }
`

const lostLine = "a slot was lost while it was held: others may be admitted beside its holder"

// TestLostSlotIsTold has Redis lose the slots of requests that run: log and metrics say so,
// the log once.
func TestLostSlotIsTold(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", leaseRules)
	enough := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-enough:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(upstream.Close)
	s := w.serveRedis("redis://"+server.Addr, patientStore, "--rules=rules.yaml", "--upstreams="+upstream.URL)
	gateway, admin := s.ready()
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() {
			if got, _ := w.get(once, gateway+"/slow"); got != http.StatusOK {
				t.Errorf("answered %d", got)
			}
		})
	}
	w.until("three slots are taken", func() bool { return strings.TrimSpace(server.Do("ZCARD", "tg:renders:{everyone=}:slots:1s")) == "3" })
	server.Do("FLUSHALL")
	w.until("a renewal of each is counted", func() bool { return w.metric(admin, "tidegate_store_leases_lost_total") >= 3 })
	close(enough)
	requests.Wait()
	s.await(1, lostLine)
	if n := strings.Count(s.logText(), lostLine); n != 1 {
		t.Errorf("the log tells %d times, want once", n)
	}
}
