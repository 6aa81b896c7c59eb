//go:build unix

package serve

import (
	"strings"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// counting is handoverRules with another way to count.
func counting(limits string) string {
	return strings.Replace(handoverRules, "limits: 3/hour", "limits: "+limits, 1)
}

// Whoever is replaced, or restarted, with rules that count otherwise refills nobody: what the
// rules before counted is known.
func testRestartWithOtherRules(t *testing.T, bin string) {
	w := newSandbox(t, bin, "rules.yaml", counting("{ rate: 3/hour, algorithm: token_bucket }"))
	serve := func() *serving {
		return w.serve("", nil, "--store.memory.snapshot=counters", "--store.memory.snapshot_every=0", "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
	}
	first := serve()
	gateway, _ := first.ready()
	w.spend(gateway, "acme")
	first.signal(syscall.SIGTERM)
	if code := first.end(); code != 0 {
		t.Fatalf("it exits with %d", code)
	}
	w.write("rules.yaml", counting("3/hour"))
	second := serve()
	gateway, _ = second.ready()
	w.exhausted(gateway, "acme")
	line := second.await(1, "counters of a limit do not simply continue")
	if got := line["change"]; got != "rule few: 3/1h0m0s sliding_log continues from 3/1h0m0s token_bucket burst 3, which also applies for 1h0m0s" {
		t.Errorf("it says %v", got)
	}
	// Once more, to an algorithm that neither of them has, by a successor.
	w.write("rules.yaml", counting("{ rate: 3/hour, algorithm: sliding_window }"))
	second.signal(syscall.SIGUSR2)
	second.await(2, "serving")
	if code := second.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
}

// The same of counters in Redis, which a successor goes on with.
func TestUpgradeWithOtherRulesOnRedis(t *testing.T) {
	server := testdep.Redis(t)
	w := newSandbox(t, testdep.Command(t), "rules.yaml", counting("{ rate: 3/hour, algorithm: token_bucket }"))
	s := w.serveRedis("redis://"+server.Addr, patientStore)
	gateway, _ := s.ready()
	w.spend(gateway, "acme")
	w.write("rules.yaml", counting("3/hour"))
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if code := s.end(); code != 0 {
		t.Errorf("the predecessor exits with %d", code)
	}
	w.exhausted(gateway, "acme")
}
