//go:build unix

package serve

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const graceRules = `version: 1
identify: { who: query who }
rules:
  - { name: few, match: GET /api/things, per: who, limits: 2/hour, over: { soft: 100%, max_time: 1s } }
`

// useGraceUp uses the limit of a client up, begins to be above it, and returns when it is hard. The ceiling
// would admit one more.
func (w *sandbox) useGraceUp(gateway, who string) {
	w.Helper()
	for i := range 3 {
		if got, body := w.get(once, gateway+"/api/things?who="+who); got != http.StatusOK {
			w.Fatalf("request %d of %s is answered %d: %s", i, who, got, body)
		}
	}
	time.Sleep(1100 * time.Millisecond) // max_time
	w.hard(gateway, who)
}

// hard wants no other grace to begin for a client.
func (w *sandbox) hard(gateway, who string) {
	w.Helper()
	if got, body := w.get(once, gateway+"/api/things?who="+who); got != http.StatusTooManyRequests {
		w.Errorf("%s, whose limit was soft before and had no room since, is answered %d: %s", who, got, body)
	}
}

// A limit that was soft for its time stays hard through a restart from a snapshot and an upgrade.
func testSoftForAWhile(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", graceRules)
	args := append(anyPorts[:len(anyPorts):len(anyPorts)], "--store.memory.snapshot=counters")
	first := w.serve("", nil, args...)
	gateway, _ := first.ready()
	w.useGraceUp(gateway, "ann")
	first.signal(syscall.SIGTERM)
	if code := first.end(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	next := w.serve("", nil, args...)
	gateway, _ = next.ready()
	next.await(1, "counters restored")
	w.hard(gateway, "ann")
	next.signal(syscall.SIGUSR2)
	next.await(2, "serving")
	if code := next.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.hard(gateway, "ann")
}

// On Redis it is hard on all nodes, and on those that are started later.
func testSoftForAWhileOnRedis(t *testing.T, bin string) {
	server := testdep.Redis(t)
	w := newSandbox(t, bin, "rules.yaml", graceRules)
	start := func() (*serving, string) {
		s := w.serveRedis("redis://"+server.Addr, patientStore)
		gateway, _ := s.ready()
		return s, gateway
	}
	first, gateway := start()
	second, other := start()
	w.useGraceUp(gateway, "ann")
	w.hard(other, "ann")
	second.signal(syscall.SIGUSR2)
	second.await(2, "serving")
	w.hard(other, "ann")
	first.signal(syscall.SIGKILL)
	first.end()
	_, gateway = start()
	w.hard(gateway, "ann")
}
