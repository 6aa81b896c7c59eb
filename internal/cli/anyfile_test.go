//go:build unix

package cli

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// No file that an operator names ends the process, or keeps it waiting: neither one
// that is larger than memory, nor one without an end, nor a pipe that nobody writes
// to. Wherever a file can be named.
func TestNoFileEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return in(name)
	}
	sparse, err := os.Create(in("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sparse.Truncate(20 << 30); err != nil {
		t.Fatal(err)
	}
	_ = sparse.Close()
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key := certificate(t)
	good := write("good.yaml", "version: 1\nrules: [{ name: api, per: ip, limits: 1/minute }]\n")
	certFile, keyFile := write("cert.pem", cert), write("key.pem", key)

	for _, bad := range []string{in("sparse"), "/dev/zero", in("pipe"), dir + "/"} {
		include := write("include.yaml", fmt.Sprintf("version: 1\ninclude: [%q]\n", bad))
		list := write("list.yaml", fmt.Sprintf("version: 1\nlists: { banned: \"file %s\" }\nrules: [{ name: api, when: { ip: in banned }, deny: true }]\n", bad))
		test := write("of_test.yaml", fmt.Sprintf("rules: %q\ncases: [{ name: a, steps: [{ request: GET /, want: ok }] }]\n", bad))
		for _, args := range [][]string{
			{"lint", bad},
			{"lint", include},
			{"lint", list},
			{"test", bad},
			{"test", test},
			{"explain", "--rules", bad, "GET", "/"},
			{"explain", "--rules", list, "GET", "/"},
			{"explain", "--rules", good, "--request", bad},
			{"config", "-c", bad},
			{"keys", "--token-file", bad, "get"},
			{"serve", "-c", bad},
			{"serve", "--rules", bad},
			{"serve", "--rules", include},
			{"serve", "--rules", list},
			{"serve", "--rules", good, "--trust.jwt.key", bad},
			{"serve", "--rules", good, "--trust.jwt.jwks", bad},
			{"serve", "--admin.token_file", bad},
			{"serve", "--tls.cert", bad, "--tls.key", keyFile},
			{"serve", "--tls.cert", certFile, "--tls.key", bad},
			{"serve", "--tls.cert", certFile, "--tls.key", keyFile, "--tls.client_ca", bad},
			{"serve", "--store.redis", "redis://127.0.0.1:1", "--store.password_file", bad},
			{"serve", "--store.redis", "rediss://127.0.0.1:1?ca=" + bad},
			{"serve", "--store.redis", "rediss://127.0.0.1:1?cert=" + bad + "&key=" + keyFile},
		} {
			if args[0] == "serve" {
				args = append(args, "--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0")
			}
			var out bytes.Buffer
			ended := make(chan int, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				env := Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
				ended <- run(ctx, env, args)
			}()
			select {
			case code := <-ended:
				if code == exitOK {
					t.Errorf("%q is fine:\n%.500s", args, &out)
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("%q does not end", args)
			}
			cancel()
		}
	}
}

// certificate is one that a server could have, as PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", pair.Certificate[0]), text("PRIVATE KEY", der)
}
