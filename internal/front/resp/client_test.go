package resp_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/store/memory"
)

// run runs a client program and returns what it said.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, testdep.Need(t, program), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func redisCLI(t *testing.T, addr string, args ...string) string {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	return run(t, "redis-cli", append([]string{"-h", host, "-p", port}, args...)...)
}

func TestRedisCLI(t *testing.T) {
	users := []resp.User{{Name: "default", Password: "secret"}, {Name: "ann", Password: "pass", Prefix: "ann:"}}
	store := memory.New()
	_, c := serve(t, resp.Options{Desk: newDesk(t, store), Store: store, Users: users})
	f := func(want string, args ...string) {
		t.Helper()
		if got := strings.TrimSpace(strings.ReplaceAll(redisCLI(t, c.addr, args...), "\n", " ")); got != want {
			t.Errorf("redis-cli %q said %q, want %q", args, got, want)
		}
	}
	f("NOAUTH Authentication required.", "PING")
	f("PONG", "--no-auth-warning", "-a", "secret", "PING")
	f("0 16 15 -1 2", "--no-auth-warning", "-a", "secret", "CL.THROTTLE", "k", "15", "30", "60")
	f("0 16 15 -1 2", "--no-auth-warning", "--user", "ann", "-a", "pass", "-3", "CL.THROTTLE", "k", "15", "30", "60")
	f("decision allowed rule posts limit 3 remaining 2 retry_after -1 reset_after 3600000 soft 0 ticket  reason",
		"--no-auth-warning", "-a", "secret", "TG.CHECK", "PATH", "/posts", "AS", "user", "42")
	f("ERR unknown command 'GET', with args beginning with: 'x'", "--no-auth-warning", "-a", "secret", "GET", "x")
	// What it asks when it is used by hand.
	if got := run(t, "bash", "-c", "printf 'PING\\nCL.THROTTLE x 0 1 60\\nINFO server\\n' | redis-cli --no-auth-warning -a secret -p "+c.addr[strings.LastIndex(c.addr, ":")+1:]); !strings.Contains(got, "PONG\n0\n1\n0\n-1\n60\n# Server") {
		t.Errorf("redis-cli said %q", got)
	}
}

func TestRedisBenchmark(t *testing.T) {
	store := memory.New()
	s, c := serve(t, resp.Options{Desk: newDesk(t, store), Store: store})
	_, port, _ := net.SplitHostPort(c.addr)
	for _, args := range [][]string{
		{"-P", "1", "-n", "2000", "PING"},
		{"-P", "64", "-n", "20000", "cl.throttle", "key:__rand_int__", "100", "1000", "60"},
		{"-P", "64", "-n", "20000", "-3", "cl.throttle", "key", "1000000", "1", "1"},
		{"-P", "16", "-n", "5000", "tg.check", "PATH", "/posts", "AS", "user", "__rand_int__"},
	} {
		before := s.Stats().Commands
		got := run(t, "redis-benchmark", append([]string{"-p", port, "-r", "1000", "-q"}, args...)...)
		if strings.Contains(got, "rror") || strings.Contains(got, "WARN") || !strings.Contains(got, "requests per second") {
			t.Errorf("redis-benchmark %q said %q", args, got)
		}
		if s.Stats().Commands-before < 2000 {
			t.Errorf("redis-benchmark %q: %d commands", args, s.Stats().Commands-before)
		}
	}
	var limited, limit, left int
	got := c.five("key 1000000 1 1 0")
	if _, err := fmt.Sscan(got, &limited, &limit, &left); err != nil || limit-left < 19000 || limit-left > 20000+50*64 { // what is under way at the end counts too
		t.Errorf("after 20000 commands: %s", got)
	}
	if st := s.Stats(); st.Protocol != 0 || st.Stalled != 0 {
		t.Errorf("%+v", st)
	}
}

// rueidis with all its defaults: HELLO 3, CLIENT TRACKING, pipelining.
func TestRueidis(t *testing.T) {
	store := memory.New()
	_, c := serve(t, resp.Options{Desk: newDesk(t, store), Store: store, Users: []resp.User{{Name: "ann", Password: "pass", Prefix: "ann:"}}})
	for _, o := range []rueidis.ClientOption{
		{Username: "ann", Password: "pass"},
		{Username: "ann", Password: "pass", AlwaysRESP2: true, DisableCache: true},
		{Username: "ann", Password: "pass", ClientName: "me", AlwaysPipelining: true},
	} {
		o.InitAddress = []string{c.addr}
		client, err := rueidis.NewClient(o)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx := t.Context()
		if err := client.Do(ctx, client.B().Arbitrary("DEL", "k").Build()).Error(); err != nil {
			t.Error(err)
		}
		var commands rueidis.Commands
		for range 20 {
			commands = append(commands, client.B().Arbitrary("CL.THROTTLE", "k", "9", "1", "3600").Build())
		}
		passed := 0
		for _, r := range client.DoMulti(ctx, commands...) {
			five, err := r.AsIntSlice()
			if err != nil || len(five) != 5 {
				t.Fatalf("%v, %v", five, err)
			}
			if five[0] == 0 {
				passed++
			}
		}
		if passed != 10 {
			t.Errorf("%d of 20 passed, want 10", passed)
		}
		got, err := client.Do(ctx, client.B().Arbitrary("TG.CHECK", "PATH", "/private").Build()).AsMap()
		if word := got["decision"]; err != nil || func() string { s, _ := word.ToString(); return s }() != "denied" {
			t.Errorf("%v, %v", got, err)
		}
		if err := client.Do(ctx, client.B().Arbitrary("GET", "k").Build()).Error(); err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("GET: %v", err)
		}
	}
}
