package proxies

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestMain(m *testing.M) { testdep.Main(m) }

// serve starts the command in a folder.
func serve(t *testing.T, dir string, args ...string) *testdep.Program {
	t.Helper()
	return testdep.Run(t, dir, testdep.Command(t), append([]string{"serve"}, args...)...)
}

// newFolder is a folder with rules.
func newFolder(t *testing.T, rules string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rules.yaml"), rules)
	return dir
}

// serveCheck starts the command for proxies on this machine.
func serveCheck(t *testing.T, dir, addr string) *testdep.Program {
	t.Helper()
	s := serve(t, dir, "--rules=rules.yaml", "--listen.gateway=off", "--listen.admin=127.0.0.1:0", "--listen.check="+addr, "--trust.proxies=127.0.0.1")
	s.Listens(t, "tcp", addr)
	return s
}

// Behind a proxy, Tidegate limits; stopped, it does not stop anybody; started again, it limits
// again.
func TestTidegateIsStopped(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		dir, check := newFolder(t, twoPerMinute), "127.0.0.1:"+testdep.FreePort(t)
		s, o := serveCheck(t, dir, check), newOrigin(t)
		c := newClient(t, p.run(t, check, o.addr))
		limits := func() {
			t.Helper()
			for i, want := range []int{200, 200, 429} {
				got := c.get("/two/x")
				if wait, _ := strconv.Atoi(got.header.Get("Retry-After")); got.status != want || (wait > 0) != (want == 429) {
					t.Errorf("request %d: %d, Retry-After: %s", i, got.status, got.header.Get("Retry-After"))
				}
				if slip := got.header.Get("Refusal-Slip"); strings.HasPrefix(slip, "rs1_") != (want == 429) {
					t.Errorf("request %d: Refusal-Slip: %q", i, slip)
				}
			}
			if got := c.get("/denied/x"); got.status != 403 || !strings.HasPrefix(got.header.Get("Refusal-Slip"), "rs1_") {
				t.Errorf("denied: %d, Refusal-Slip: %q", got.status, got.header.Get("Refusal-Slip"))
			}
			if arrived := o.reached(); len(arrived) != 2 {
				t.Errorf("%d requests arrived", len(arrived))
			}
		}
		limits()
		s.Kill()
		for range 5 {
			if got := c.get("/two/x"); p.opens == (got.status != 200) || p.opens != (len(o.reached()) == 1) {
				t.Errorf("while it is stopped: %+v", got)
			}
		}
		serveCheck(t, dir, check)
		limits()
	})
}

// The example of a sidecar does what it says, over a Unix socket.
func TestNginxSidecar(t *testing.T) {
	short, err := os.MkdirTemp("", "side") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "check.sock")
	dir := deployed(t, "nginx", "/run/tidegate/check.sock", socket, "127.0.0.1:9090", "127.0.0.1:0")
	s := serve(t, dir, "-c", "tidegate.yaml")
	s.Listens(t, "unix", socket)
	o := newOrigin(t)
	c := newClient(t, all[0].run(t, "unix:"+socket, o.addr))
	for i := range 6 {
		want := 200
		if i == 5 {
			want = 429
		}
		got := c.get("/api/things")
		if got.status != want || !strings.HasPrefix(got.header.Get("RateLimit"), `"api";r=`+strconv.Itoa(max(0, 4-i))+";") || (got.header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d: %+v", i, got)
		}
	}
	if got := c.get("/internal/x"); got.status != 403 {
		t.Errorf("internal: %+v", got)
	}
	if got := c.get("/"); got.status != 200 {
		t.Errorf("site: %+v", got)
	}
	s.Kill()
	if got := c.get("/internal/x"); got.status != 200 {
		t.Errorf("while it is stopped: %+v", got)
	}
}
