//go:build unix

package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shedRules shed by what is pushed: all requests by their address, and those of a rule, if it says so, by
// whom it counts.
const shedRules = `version: 1
identify: { who: query who }
classes: [{ name: critical, match: POST / }, { name: rest }]
shed: { while: load > 4, never: critical }
rules:
  - { name: own, match: /own, per: who, limits: 1000000/hour%s }
`

const ownShed = ", shed: { while: load > 2, never: critical }"

// shedNode is a gateway whose load is pushed.
type shedNode struct {
	*sandbox
	*serving
	gateway, admin string
}

// push says how high the load is.
func (n *shedNode) push(load float64) {
	n.Helper()
	res, err := once.Post(n.admin+"/load", "application/json", strings.NewReader(fmt.Sprintf(`{"value": %v}`, load)))
	if err != nil {
		n.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		n.Fatalf("a load of %v is answered %d: %s", load, res.StatusCode, text)
	}
}

// steps are those of a rule. Whoever looks at them makes it look at the signals.
func (n *shedNode) steps(rule string) float64 {
	n.Helper()
	return n.metric(n.admin, `tidegate_shed_steps{rule="`+rule+`"}`)
}

// climb pushes a load until a rule is at three steps or above on both nodes, and then one near the bound, at
// which the level stays for half a minute.
func climb(nodes [2]*shedNode, rule string, load, near float64) {
	nodes[0].until("both shed", func() bool {
		least := 3.0
		for _, n := range nodes {
			n.push(load)
			least = min(least, n.steps(rule))
		}
		return least >= 3
	})
	for _, n := range nodes {
		n.push(near)
	}
}

// shed is who of a hundred clients is shed, by address or, for /own, by name, and at which step that is.
func (n *shedNode) shed(method, path, rule string) (who map[string]bool, steps float64) {
	n.Helper()
	for {
		who, steps = map[string]bool{}, n.steps(rule)
		for i := range 100 {
			client := fmt.Sprint("198.51.100.", i)
			r, err := http.NewRequest(method, n.gateway+path+"?who="+client, nil)
			if err != nil {
				n.Fatal(err)
			}
			r.Header.Set("X-Forwarded-For", client)
			res, err := once.Do(r)
			if err != nil {
				n.Fatal(err)
			}
			res.Body.Close()
			switch {
			case res.StatusCode == http.StatusOK:
			case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
				who[client] = true
			default:
				n.Fatalf("%s %s is answered %d with %v", method, path, res.StatusCode, res.Header)
			}
		}
		if n.steps(rule) == steps { // it has not moved meanwhile
			return who, steps
		}
	}
}

// Two gateways that tell each other nothing shed the same clients, those of all requests by address and those
// of a rule by whom it counts; a rule that gains or loses shed in a reload does so at once, and the level of
// others stays.
func testShed(t *testing.T, bin string) {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	w := newSandbox(t, bin, "rules.yaml", fmt.Sprintf(shedRules, ownShed))
	var nodes [2]*shedNode
	for i := range nodes {
		s := w.serve("", nil, append(anyPorts[:len(anyPorts):len(anyPorts)], "--upstreams="+upstream.URL, "--trust.proxies=127.0.0.1")...)
		nodes[i] = &shedNode{sandbox: w, serving: s}
		nodes[i].gateway, nodes[i].admin = s.ready()
	}
	same := func(path, rule string) {
		t.Helper()
		var who [2]map[string]bool
		var steps [2]float64
		for i, n := range nodes {
			who[i], steps[i] = n.shed(http.MethodGet, path, rule)
			if shed := float64(len(who[i])); shed < 10*steps[i]-25 || shed > 10*steps[i]+25 || (shed > 0) != (steps[i] > 0) {
				t.Errorf("%s at %v steps: %d of 100 are shed", path, steps[i], len(who[i]))
			}
		}
		less, more := who[0], who[1]
		if steps[0] > steps[1] {
			less, more = more, less
		}
		for client := range less {
			if !more[client] {
				t.Errorf("%s: %s is shed by one gateway, and not by the other at %v steps", path, client, steps)
			}
		}
		if steps[0] == steps[1] && len(less) != len(more) {
			t.Errorf("%s: %d and %d are shed at %v steps", path, len(less), len(more), steps)
		}
	}
	climb(nodes, "own", 3, 1.9) // below the bound of the file
	for _, n := range nodes {
		if line := n.await(1, "requests are shed"); line["rule"] != "own" || line["class"] != "rest" || line["over"] != "load > 2: 3" {
			t.Errorf("it logs %v", line)
		}
		if n.steps("(shed)") != 0 {
			t.Errorf("all are shed at %v steps", n.steps("(shed)"))
		}
	}
	same("/own", "own")
	for _, n := range nodes {
		if who, _ := n.shed(http.MethodGet, "/", "(shed)"); len(who) > 0 {
			t.Errorf("%d of another path are shed", len(who))
		}
	}

	// The rule loses shed, and the file's goes on by itself.
	w.write("rules.yaml", fmt.Sprintf(shedRules, ""))
	for _, n := range nodes {
		n.signal(syscall.SIGHUP)
		n.until("the rule sheds no more", func() bool {
			_, page := n.get(once, n.admin+"/metrics")
			return !strings.Contains(page, `tidegate_shed_steps{rule="own"}`)
		})
		if who, _ := n.shed(http.MethodGet, "/own", "(shed)"); len(who) > 0 {
			t.Errorf("%d are shed by a rule that has lost it", len(who))
		}
	}
	climb(nodes, "(shed)", 5, 3.9)
	same("/", "(shed)")
	if who, _ := nodes[0].shed(http.MethodPost, "/", "(shed)"); len(who) > 0 {
		t.Errorf("%d critical requests are shed", len(who))
	}

	// It gains it again: from no level, while that of the file stays.
	before := nodes[0].steps("(shed)")
	nodes[0].push(1.9)
	start := time.Now()
	w.write("rules.yaml", fmt.Sprintf(shedRules, ownShed))
	nodes[0].signal(syscall.SIGHUP)
	nodes[0].until("the rule may shed again", func() bool {
		_, page := nodes[0].get(once, nodes[0].admin+"/metrics")
		return strings.Contains(page, `tidegate_shed_steps{rule="own"} 0`)
	})
	if is := nodes[0].steps("(shed)"); is != before && time.Since(start) < 4*time.Second { // it goes down every 5 s
		t.Errorf("a reload moved the level from %v to %v", before, is)
	}
}
