package browser

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	aliceToken = "alice-5f2c9b1e7a4d"
	bobToken   = "bobby-5f2c9b1e7a4d"
	carolToken = "carol-5f2c9b1e7a4d"
)

const storyRules = `version: 1
identify: { user: client header X-User }

rules:
  - name: search
    match: GET /search
    per: user
    limits: 10/10s

  - name: orders
    match: /api/
    per: user
    limits: { rate: 5/second, burst: 10, algorithm: token_bucket }
    candidate: { rate: 2/second, burst: 5, algorithm: token_bucket }

  # Everybody together.
  - name: site
    per: everyone
    limits: { rate: 500/second, burst: 1000, algorithm: token_bucket }
`

var program struct {
	once sync.Once
	path string
	err  error
}

// build returns the program.
func build(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		dir, err := os.MkdirTemp("", "tidegate-browser")
		if err != nil {
			program.err = err
			return
		}
		program.path = filepath.Join(dir, "tidegate")
		cmd := exec.Command("go", "build", "-o", program.path, "./cmd/tidegate")
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// operator is a line of the file of operators.
func operator(name, role, token string) string {
	return fmt.Sprintf("%s %s %x\n", name, role, sha256.Sum256([]byte(token)))
}

// server is a running Tidegate.
type server struct {
	t              *testing.T
	dir            string
	gateway, admin string
	process        *os.Process
}

// serve starts one with these rules and operators, and settings beside them.
func serve(t *testing.T, rules string, more ...string) *server {
	t.Helper()
	return start(t, rules, append([]string{"--demo"}, more...)...)
}

// start is serve without what --demo adds.
func start(t *testing.T, rules string, more ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.write("operators", operator("alice", "rule", aliceToken)+operator("bob", "view", bobToken)+operator("carol", "rule", carolToken))
	s.write("tidegate.yaml", "listen: { gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }\nadmin: { tokens: operators, audit: audit.log, pages: 2000 }\nlog: { access: off, keys: plain }\ntelemetry: { refusals: 0 }\n")
	args := []string{"serve", "-c", "tidegate.yaml"}
	if rules != "" {
		s.write("rules.yaml", rules)
		args = append(args, "--rules=rules.yaml")
	}
	cmd := exec.Command(build(t), append(args, more...)...)
	cmd.Dir = s.dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = cmd.Process
	var log strings.Builder
	var mu sync.Mutex
	ready := make(chan [2]string, 1)
	go func() {
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			mu.Lock()
			fmt.Fprintln(&log, scan.Text())
			mu.Unlock()
			var line struct{ Msg, Gateway, Admin string }
			if json.Unmarshal(scan.Bytes(), &line) == nil && line.Msg == "serving" {
				ready <- [2]string{line.Gateway, line.Admin}
			}
		}
		close(ready)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, secret := range []string{aliceToken, bobToken, carolToken} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has a token in it: %s", log.String())
			}
		}
		if t.Failed() {
			t.Logf("%.3000s", log.String())
		}
	})
	at, ok := <-ready
	if !ok {
		t.Fatal("the server did not start")
	}
	s.gateway, s.admin = at[0], at[1]
	return s
}

// startTwo starts web-1 and web-2, which share the Redis at an address, and wait for it for so long that
// a busy machine does not miss that.
func startTwo(t *testing.T, redis string, more ...string) (a, b *server) {
	t.Helper()
	node := func(name string) *server {
		return start(t, storyRules, append([]string{"--store.redis=redis://" + redis, "--store.deadline=10s", "--store.instance=" + name}, more...)...)
	}
	return node("web-1"), node("web-2")
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// send sends a request of a user through the gateway.
func (s *server) send(user, path string) (status int, slip string) {
	r, err := http.NewRequest("GET", s.gateway+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-User", user)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Refusal-Slip")
}

// load sends requests of several users until the test ends: heavy is refused all the time.
func (s *server) load() {
	for user, every := range map[string]time.Duration{"heavy": 60 * time.Millisecond, "ann": 1500 * time.Millisecond, "bert": 900 * time.Millisecond, "cleo": 1100 * time.Millisecond} {
		s.keepAsking(user, every, "/search", "/search", "/api/things")
	}
}

// keepAsking sends requests of a user at an interval, for paths in turn, until the test ends.
func (s *server) keepAsking(user string, every time.Duration, paths ...string) {
	var done sync.WaitGroup
	s.t.Cleanup(done.Wait) // the test's context has ended by then
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-s.t.Context().Done():
				return
			case <-tick.C:
				s.send(user, paths[i%len(paths)])
			}
		}
	})
}

// ask asks the admin API as alice.
func (s *server) ask(path string, answer any) {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.admin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+aliceToken)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(answer); err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
}

func (s *server) rulesHash() string {
	var is struct{ Hash string }
	s.ask("/rules", &is)
	return is.Hash
}
