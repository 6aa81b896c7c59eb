package gateway

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func TestCurl(t *testing.T) {
	program := testdep.Need(t, "curl")
	curl := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append([]string{"--silent", "--show-error", "--max-time", "10", "--noproxy", "*"}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("curl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	const summary = "\n%{http_version} %{http_code}"
	g := before(t, wireRules, echo)
	f := func(want string, args ...string) {
		t.Helper()
		if got := curl(append(args, "--write-out", summary)...); got != want {
			t.Errorf("curl %s: %q, want %q", strings.Join(args, " "), got, want)
		}
	}
	f("GET /a?b=c body \"\" trailer map[]\n\n1.1 200", g.url+"/a?b=c")
	f("GET /a body \"\" trailer map[]\n\n1 200", "--http1.0", g.url+"/a")
	f("GET /a body \"\" trailer map[]\n\n1.1 200", "--http2", g.url+"/a") // offers h2c
	f("POST /a body \"n=1\" trailer map[]\n\n1.1 200", "--data", "n=1", g.url+"/a")
	if got := curl("--head", g.url+"/limited"); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.Contains(strings.ToLower(got), "ratelimit: \"limited\";r=0") {
		t.Errorf("HEAD: %s", got)
	}
	if got := curl(g.url+"/limited", "--write-out", summary); !strings.Contains(got, "quota of the policy limited") || !strings.HasSuffix(got, "1.1 429") {
		t.Errorf("refused: %q", got)
	}

	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	sizes := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err, r.ContentLength)
	})
	for _, args := range [][]string{
		{"--upload-file", file, sizes.url}, // with Expect: 100-continue
		{"--upload-file", "-", "--header", "Transfer-Encoding: chunked", sizes.url},
	} {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--silent", "--show-error", "--noproxy", "*"}, args...)...)
		cmd.Stdin, _ = os.Open(file)
		if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), "3145728 <nil>") {
			t.Errorf("curl %v: %s, %v", args, out, err)
		}
	}

	secured, _ := secure(t, true, echo)
	f("GET /a body \"\" trailer map[]\n\n2 200", "--insecure", "--http2", secured.url+"/a")
	f("GET /a body \"\" trailer map[]\n\n1.1 200", "--insecure", "--http1.1", secured.url+"/a")

	sockets := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, _ := http.NewResponseController(w).Hijack()
		fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		buf.Flush()
		conn.Close()
	})
	// curl has nothing to say in the tunnel, and complains when that ends.
	got, _ := exec.CommandContext(t.Context(), program, "--silent", "--max-time", "10", "--noproxy", "*", "--include",
		"--header", "Connection: Upgrade", "--header", "Upgrade: websocket", sockets.url).Output()
	if !strings.HasPrefix(string(got), "HTTP/1.1 101 ") {
		t.Errorf("upgrade: %q", got)
	}
}
