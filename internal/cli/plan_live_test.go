package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

// counting are the algorithms that a limit may have.
var counting = []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"}

// everyAlgorithm has a rule of each algorithm, with that limit a week.
func everyAlgorithm(limit int) string {
	var b strings.Builder
	b.WriteString("version: 1\nidentify: { user: header X-User }\nrules:\n")
	for _, a := range counting {
		burst, queue := "", ""
		switch a {
		case "token_bucket":
			burst = fmt.Sprintf(", burst: %d", limit)
		case "leaky_bucket":
			queue = ", queue: { places: 1, max_wait: 1s }"
		}
		fmt.Fprintf(&b, "  - { name: %s, match: /api/%s, per: user, limits: { rate: %d/week, algorithm: %s%s }%s }\n", a, a, limit, a, burst, queue)
	}
	return b.String()
}

// crowd are users of a gateway.
type crowd struct {
	t       *testing.T
	gateway string
	client  http.Client
	users   int
}

// asks has every user ask so often for what a rule is about, and returns how many were refused.
func (c *crowd) asks(rule string, times func(user int) int) (refused int64) {
	c.t.Helper()
	var workers sync.WaitGroup
	var next, count, failed atomic.Int64
	for range 8 {
		workers.Go(func() {
			for u := int(next.Add(1)) - 1; u < c.users; u = int(next.Add(1)) - 1 {
				for range times(u) {
					switch c.ask(rule, u) {
					case http.StatusTooManyRequests:
						count.Add(1)
					case 0:
						failed.Add(1)
					}
				}
			}
		})
	}
	workers.Wait()
	if n := failed.Load(); n > 0 {
		c.t.Fatalf("%s: %d requests failed", rule, n)
	}
	return count.Load()
}

func (c *crowd) ask(rule string, user int) int {
	r, err := http.NewRequest(http.MethodGet, c.gateway+"/api/"+rule, nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-User", fmt.Sprint("user-", user))
	answer, err := c.client.Do(r)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Many keys of every algorithm, in memory and in Redis: a plan and a comment on a pull
// request say how many would be refused, and so many are when the rules are put in force.
func TestPlanOfManyLiveKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	testdep.Need(t, "git")
	program := theCommand(t)
	for name, flags := range map[string]func(*testing.T) []string{
		"memory": func(*testing.T) []string { return nil },
		"redis": func(t *testing.T) []string {
			return []string{"--store.redis=redis://" + testdep.Redis(t).Addr, patientStore}
		},
	} {
		t.Run(name, func(t *testing.T) { testLiveKeys(t, program, flags(t)) })
	}
}

func testLiveKeys(t *testing.T, program string, flags []string) {
	const was, now = 10, 3
	users := testdep.Longer(200, 1000)
	inForce := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(file string, limit int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(everyAlgorithm(limit)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(inForce, was)
	gateway, at := serving(t, program, append(flags, "--trust.proxies=127.0.0.1", "--rules="+inForce)...)
	c := &crowd{t: t, gateway: gateway, users: users, client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	defer c.client.CloseIdleConnections()
	asked := func(rule string) func(user int) int {
		if rule == "leaky_bucket" { // whose second request has to wait for days
			return func(int) int { return 1 }
		}
		return func(user int) int { return user%5 + 1 }
	}
	for _, rule := range counting {
		if n := c.asks(rule, asked(rule)); n > 0 {
			t.Fatalf("%s: %d requests are refused by %d a week", rule, n, was)
		}
	}

	// A pull request lowers all limits.
	repo := t.TempDir()
	proposed := filepath.Join(repo, "rules.yaml")
	gitIn(t, repo, "init", "-q")
	for _, limit := range []int{was, now} {
		write(proposed, limit)
		gitIn(t, repo, "add", "-A")
		gitIn(t, repo, "commit", "-q", "-m", fmt.Sprint(limit, " a week"))
	}
	var report struct {
		Plan struct {
			Live admin.Plan `json:"live"`
		} `json:"plan"`
	}
	if err := json.Unmarshal([]byte(printed(t, "ci", "--base", "HEAD~1", "--server", at, "--json", proposed)), &report); err != nil {
		t.Fatal(err)
	}
	live := report.Plan.Live
	if len(live.Keys) != len(counting) || live.Unknown != "" {
		t.Fatalf("%+v", live)
	}
	want, newly, total := make(map[string]int64), make(map[string]int64), int64(0)
	for _, k := range live.Keys {
		refused, more := int64(0), int64(users*3/5) // those who have asked three times and more
		if k.Rule == "leaky_bucket" {
			refused, more = int64(users), 0
		}
		if k.Keys != int64(users) || k.AtLeast != more || k.AtMost != more || k.Refused != refused || k.Seen != 1 {
			t.Errorf("%+v", k)
		}
		want[k.Rule], newly[k.Rule] = k.Refused+k.AtMost, k.AtMost
		total += k.AtMost
	}
	comment := printed(t, "ci", "--base", "HEAD~1", "--server", at, proposed)
	if line := fmt.Sprintf("**%d live keys that are admitted now would be refused.**", total); !strings.Contains(comment, line) {
		t.Errorf("the comment does not say %q:\n%s", line, comment)
	}
	plan := printed(t, "plan", "--server", at, proposed)
	for _, rule := range counting {
		if line := fmt.Sprintf(": %d of %d live keys would newly be refused", newly[rule], users); !strings.Contains(plan, "rule "+rule+",") || !strings.Contains(plan, line) {
			t.Errorf("the plan does not say %q of %s:\n%s", line, rule, plan)
		}
	}

	// And so it is.
	hash := live.Hash
	write(inForce, now)
	testdep.Eventually(t, "the rules are in force", func() bool {
		var status admin.RulesStatus
		return json.Unmarshal([]byte(printed(t, "rules", "status", "--json", "--server", at)), &status) == nil && status.Instances[0].Hash != hash
	})
	for _, rule := range counting {
		if n := c.asks(rule, func(int) int { return 1 }); n != want[rule] {
			t.Errorf("%s: the plan says that %d are refused, and %d are", rule, want[rule], n)
		}
	}
}

// printed returns what a command prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := run(t.Context(), Env{Stdout: &out, Stderr: &problems, Getenv: func(string) string { return "" }}, args); code != exitOK {
		t.Fatalf("tidegate %q: exit %d: %s%s", args, code, &out, &problems)
	}
	return out.String()
}
