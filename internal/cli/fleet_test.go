package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
)

// fleetServer is an admin listener that lists these instances.
func fleetServer(t *testing.T, is *admin.Fleet) string {
	t.Helper()
	server := httptest.NewServer(admin.New(admin.Options{Fleet: func(context.Context) (admin.Fleet, error) { return *is, nil }}))
	t.Cleanup(server.Close)
	return server.URL
}

func runFleet(t *testing.T, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e := Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }}
	code = run(t.Context(), e, append([]string{"fleet"}, args...))
	return code, stdout.String(), stderr.String()
}

// fleetOfAll has an instance in every state.
func fleetOfAll() *admin.Fleet {
	start := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	return &admin.Fleet{
		Instances: []admin.Instance{
			{ID: "KXPPXHUUXQFLFWBA3HPMYXLVRP"},
			{
				ID: "A", Self: true, Known: true, Name: "web-1:42", Version: "v0.1.0", Rules: "0123456789abcdef", Started: start, Seen: start.Add(59 * time.Second),
				Clock: &admin.Clock{Offset: 0.00021, Within: 0.0001}, Circuit: &admin.Circuit{Status: "ok"}, Counts: 4, Share: 0.25,
			},
			{
				ID: "B", Known: true, Name: "web-2:42", Version: "v0.1.0", Rules: "fedcba9876543210", Started: start, Seen: start.Add(100 * time.Minute),
				Clock: &admin.Clock{Offset: -1.534, Within: 0.0001, Off: true}, Circuit: &admin.Circuit{Status: "partial", Servers: []string{"10.0.0.1:6379"}, Count: 1},
				Backlog: 12, Leases: 3, LeasedEvents: 1500, Lag: 0.101, Counts: 4, Share: 0.25,
			},
			{ID: "C", Known: true, Name: "worker", Started: start, Seen: start.Add(49 * time.Hour), Clock: &admin.Clock{Offset: -0.00001, Within: 0.0002}, Circuit: &admin.Circuit{Status: "degraded"}, Counts: 1, Share: 1},
		},
		Warnings: []string{"the clock of web-2:42 is 1.53s behind Redis: synchronize it"},
	}
}

func TestFleetTable(t *testing.T) {
	url := fleetServer(t, fleetOfAll())
	want := `INSTANCE                    VERSION  RULES             UP     CLOCK          CIRCUIT             BACKLOG  LEASES           LAG    SHARE
KXPPXHUUXQFLFWBA3HPMYXLVRP  unknown  ?                 ?      ?              ?                   ?        ?                ?      ?
web-1:42 (asked)            v0.1.0   0123456789abcdef  59s    +0.2ms ±0.1ms  ok                  0        0                -      1/4
web-2:42                    v0.1.0   fedcba9876543210  1h40m  -1.53s         partial (1 server)  12       3 (1500 events)  101ms  1/4
worker                      -        -                 2d1h   +0.0ms ±0.2ms  degraded            0        0                -      all
warning: the clock of web-2:42 is 1.53s behind Redis: synchronize it
`
	if code, out, problems := runFleet(t, "--server", url); code != exitOK || out != want || problems != "" {
		t.Errorf("exit %d:\n%s%s", code, out, problems)
	}
	if code, out, _ := runFleet(t, "--server", url, "--check"); code != exitFound || out != want {
		t.Errorf("exit %d with --check:\n%s", code, out)
	}
	code, out, _ := runFleet(t, "--server", url, "--json")
	var got admin.Fleet
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || len(got.Instances) != 4 || len(got.Warnings) != 1 {
		t.Errorf("exit %d, %v:\n%s", code, err, out)
	}
	if code, _, _ := runFleet(t, "--server", url, "--json", "--check"); code != exitFound {
		t.Errorf("exit %d with --json --check", code)
	}
}

// Instances of one name are told apart.
// Other regions follow the instances.
func TestFleetOfRegions(t *testing.T) {
	is := &admin.Fleet{
		Instances: []admin.Instance{{ID: "A"}},
		Regions:   []admin.Region{{Name: "ap", Lag: 3}, {Name: "sa", Lag: 61, Heard: true, CutOff: true}, {Name: "us", Lag: 0.314, Heard: true}},
	}
	code, out, problems := runFleet(t, "--server", fleetServer(t, is))
	const want = `
REGION  STATUS            LAG
ap      not heard of yet  ?
sa      cut off           1m1s
us      ok                314ms
`
	if code != exitOK || !strings.HasSuffix(out, want) || problems != "" {
		t.Errorf("exit %d:\n%s%s", code, out, problems)
	}
}

func TestFleetOfNamesakes(t *testing.T) {
	is := &admin.Fleet{Instances: []admin.Instance{{ID: "AAAAAAAAAA", Known: true, Name: "web"}, {ID: "BBB", Known: true, Name: "web", Self: true}, {ID: "CCCCCCCCCC", Known: true, Name: "worker"}}}
	_, out, _ := runFleet(t, "--server", fleetServer(t, is))
	for _, want := range []string{"\nweb AAAAAA ", "\nweb BBB (asked) ", "\nworker "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Nothing that an instance, or a server that pretends to be one, says controls the terminal.
func TestFleetOfStrangers(t *testing.T) {
	evil := "a\x1b[2J\r\n\tb\u202e\u009b\x00"
	is := &admin.Fleet{
		Instances: []admin.Instance{
			{ID: evil, Known: true, Name: evil, Version: evil, Rules: evil, Clock: &admin.Clock{Offset: 1e300, Within: 1e300, Server: evil}, Circuit: &admin.Circuit{Status: evil, Servers: []string{evil}}, Counts: -3},
			{ID: evil},
		},
		Warnings: []string{evil},
	}
	_, out, problems := runFleet(t, "--server", fleetServer(t, is))
	if strings.ContainsFunc(out+problems, func(r rune) bool { return r != '\n' && graphic(r) != r }) {
		t.Errorf("printed %q", out+problems)
	}
	if n := strings.Count(out, "\n"); n != 4 {
		t.Errorf("%d lines: %q", n, out)
	}
}

// Redis itself is asked, with nobody between, and watched.
func TestFleetOfRedis(t *testing.T) {
	url := "redis://" + testdep.Redis(t).Addr
	var stores []*fleet.Store
	for i := range 3 {
		s, err := fleet.Open(url, fleet.Options{Name: fmt.Sprint("web-", i), Rules: func() string { return "cafe" }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out output
	done := make(chan int)
	go func() {
		done <- run(ctx, Env{Stdout: &out, Stderr: &out}, []string{"fleet", "--redis", url, "--watch"})
	}()
	out.await(t, "web-2 ")
	out.await(t, " cafe ")
	out.await(t, " 1/3\n")
	if err := stores[2].Close(); err != nil {
		t.Error(err)
	}
	out.await(t, " 1/2\n")
	stop()
	if code := <-done; code != exitOK {
		t.Errorf("exit %d", code)
	}

	// In JSON, an object per line.
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	out = output{}
	go func() {
		done <- run(ctx, Env{Stdout: &out, Stderr: io.Discard}, []string{"fleet", "--redis", url, "--watch", "--json"})
	}()
	out.await(t, "}\n{")
	stop()
	<-done
	for line := range strings.Lines(out.buf.String()) {
		var is admin.Fleet
		if err := json.Unmarshal([]byte(line), &is); err != nil || len(is.Instances) == 0 {
			t.Errorf("%v: %s", err, line)
		}
	}
}
