//go:build unix

package serve

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const splitRules = `version: 1
identify: { customer: query customer }
rules:
  - { name: few, match: GET /api/things, per: customer, limits: 20/day, consistency: split }
`

// passed is how many of 30 requests of a customer pass.
func (w *sandbox) passed(gateway, customer string) (n int) {
	w.Helper()
	for range 30 {
		switch got, body := w.get(once, gateway+"/api/things?customer="+customer); got {
		case http.StatusOK:
			n++
		case http.StatusTooManyRequests:
		default:
			w.Fatalf("answered %d: %s", got, body)
		}
	}
	return n
}

// Without Redis the rules say how many instances share a limit, and each has its share. A
// reload is enough to say otherwise, and neither that nor an upgrade refills anybody.
func TestSplitInMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	t.Parallel()
	w := newSandbox(t, testdep.Command(t), "rules.yaml", "instances: 5\n"+splitRules)
	s := w.serve("", nil, anyPorts...)
	gateway, admin := s.ready()
	if n := w.passed(gateway, "acme"); n != 4 {
		t.Errorf("one of 5 instances let %d of 20 pass, want 4", n)
	}
	if c := w.counters(admin + "/keys?rule=few&as=customer=acme"); len(c) != 1 || c[0].Remaining != 0 {
		t.Errorf("the admin listener shows %+v", c)
	}
	for _, instances := range []int{2, 7, 1} {
		w.write("rules.yaml", "instances: "+strconv.Itoa(instances)+"\n"+splitRules)
		tries := 0
		w.until(strconv.Itoa(instances)+" instances", func() bool {
			tries++
			return w.passed(gateway, "new"+strconv.Itoa(instances)+"-"+strconv.Itoa(tries)) == 20/instances
		})
		if n := w.passed(gateway, "acme"); n != 0 {
			t.Errorf("%d instances: %d more passed", instances, n)
		}
	}
	s.signal(syscall.SIGUSR2)
	s.await(2, "serving")
	if n := w.passed(gateway, "acme"); n != 0 {
		t.Errorf("after an upgrade %d more passed", n)
	}
}
