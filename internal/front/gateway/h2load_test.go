package gateway

import (
	"net/url"
	"os/exec"
	"regexp"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Many streams on few connections, by a client that is not of Go: all are answered,
// and of those that are limited exactly as many pass as may.
func TestH2load(t *testing.T) {
	program := testdep.Need(t, "h2load")
	const limited = "version: 1\nrules: [{ name: some, match: /some, per: everyone, limits: 700/hour }]\n"
	config, _ := certificate(t)
	g := start(t, Options{Gate: gateOf(t, limited), Upstreams: []*url.URL{serve(t, hello)}}, config)
	f := func(path, statuses string, args ...string) {
		t.Helper()
		args = append(args, "--requests=2000", "--clients=4", "--connection-inactivity-timeout=20", g.url+path)
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("h2load %v: %v\n%s", args, err, out)
		}
		for _, want := range []string{`requests: 2000 total, 2000 started, 2000 done, .* 0 errored, 0 timeout`, `status codes: ` + statuses} {
			if !regexp.MustCompile(want).Match(out) {
				t.Errorf("h2load %v: no %q in\n%s", args, want, out)
			}
		}
	}
	f("/", "2000 2xx, 0 3xx, 0 4xx, 0 5xx", "--max-concurrent-streams=50")
	f("/", "2000 2xx, 0 3xx, 0 4xx, 0 5xx", "--h1")
	f("/some", "700 2xx, 0 3xx, 1300 4xx, 0 5xx", "--max-concurrent-streams=50")
}
