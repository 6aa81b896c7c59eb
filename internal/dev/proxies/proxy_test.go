// Package proxies tests what docs/front-ends.md tells users of other proxies, with these
// proxies, and with the files of deploy as they are: only the addresses are others.
package proxies

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// proxy is a program that asks Tidegate.
type proxy struct {
	name string
	// start runs it in a folder, between the door and the origin, with edits of its files,
	// pairs of old and new. It listens on addr.
	start func(t *testing.T, addr, door, origin string, edits ...string)
	// opens: its files let requests pass while Tidegate is away; closed are the edits after
	// which they do not.
	opens  bool
	closed []string
	// refuses503: it cannot tell a 503 of Tidegate that has no decision from a refusal.
	refuses503 bool
	// patient are the edits after which it waits for Tidegate as long as a busy machine takes.
	patient []string
	// http2 are the edits that make it speak HTTP/2 on addr, with a certificate and its key.
	http2 func(addr, pem string) []string
	// ownBody: clients get a page of the proxy, not Tidegate's problem+json.
	ownBody bool
	// rewrites: it normalizes paths before it asks and passes them on.
	rewrites bool
	// toOrigin: headers of an allowed decision go to the origin, not to the client; untold:
	// to nobody.
	toOrigin, untold bool
}

// always are the proxies that make test has; the others are for make conformance.
var always = []string{"nginx", "haproxy"}

var all = []proxy{
	{
		name: "nginx", start: startNginx, patient: []string{"100ms;", "30s;", "500ms;", "30s;"}, opens: true, closed: []string{"error_page 500 502 503 504 = @tidegate_away;", "", "proxy_intercept_errors on;", ""},
		http2: func(addr, pem string) []string {
			return []string{"listen " + addr + ";", "listen " + addr + " ssl http2; ssl_certificate " + pem + "; ssl_certificate_key " + pem + ";"}
		},
	},
	{
		name: "haproxy", start: startHAProxy, patient: []string{"connect 100ms", "connect 30s", "server 500ms", "server 30s", "timeout = 1000", "timeout = 60000"}, opens: true, closed: []string{"# http-request return", "http-request return"},
		http2: func(addr, pem string) []string {
			return []string{"bind " + addr, "bind " + addr + " ssl alpn h2 crt " + pem}
		},
	},
	{
		name: "caddy", start: startCaddy, patient: []string{"timeout 100ms", "timeout 30s", "timeout 500ms", "timeout 30s"}, opens: true,
		closed: []string{"reverse_proxy @away", "# reverse_proxy @away", "@unable status 5xx", "@unable status 299"},
		http2: func(_, pem string) []string {
			return []string{"bind 127.0.0.1\n", "bind 127.0.0.1\n\ttls " + pem + " " + pem + "\n"}
		},
	},
	{
		name: "caddy forward_auth", start: startCaddyForwardAuth, patient: []string{"timeout 100ms", "timeout 30s", "timeout 500ms", "timeout 30s"}, untold: true,
		http2: func(_, pem string) []string {
			return []string{"bind 127.0.0.1\n", "bind 127.0.0.1\n\ttls " + pem + " " + pem + "\n"}
		},
	},
	{
		name: "traefik", start: startTraefik, patient: []string{"dialTimeout: 100ms", "dialTimeout: 30s", "responseHeaderTimeout: 500ms", "responseHeaderTimeout: 30s"}, toOrigin: true, rewrites: true,
		opens: true, refuses503: true, closed: []string{"middlewares: [fail-open]", "middlewares: []"},
		http2: func(_, pem string) []string {
			return []string{"http:\n", "tls: { certificates: [ { certFile: " + pem + ", keyFile: " + pem + " } ] }\nhttp:\n", "service: application\n", "service: application\n      tls: {}\n"}
		},
	},
	{
		name: "apache2", start: startApache, patient: []string{"settimeout(0.1)", "settimeout(30)", "settimeout(0.5)", "settimeout(30)"}, opens: true, ownBody: true, closed: []string{"return apache2.DECLINED -- fail open", "return 503"},
		http2: func(addr, pem string) []string {
			return []string{"Listen " + addr, "Listen " + addr + "\nSSLEngine on\nSSLCertificateFile " + pem + "\nSSLCertificateKeyFile " + pem + "\nProtocols h2"}
		},
	},
}

// each runs a test for every proxy that is to be tested.
func each(t *testing.T, f func(t *testing.T, p proxy)) {
	more := strings.Fields(os.Getenv("TEST_PROXIES"))
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			if !slices.Contains(always, p.name) && !slices.Contains(more, strings.Fields(p.name)[0]) {
				t.Skip("make conformance PART=doors tests " + p.name)
			}
			f(t, p)
		})
	}
}

// run starts the proxy and returns its address.
func (p proxy) run(t *testing.T, door, origin string, edits ...string) string {
	t.Helper()
	return p.hasty(t, door, origin, append(p.patient[:len(p.patient):len(p.patient)], edits...)...)
}

// hasty is run with the time limits of the files.
func (p proxy) hasty(t *testing.T, door, origin string, edits ...string) string {
	t.Helper()
	addr := "127.0.0.1:" + testdep.FreePort(t)
	p.start(t, addr, door, origin, edits...)
	return addr
}

// deployed copies a folder of deploy and replaces text in all its files. What an edit
// replaces must be there.
func deployed(t *testing.T, name string, edits ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../deploy", name))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := make([]bool, len(edits))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for i := 0; i < len(edits); i += 2 {
			found[i] = found[i] || strings.Contains(text, edits[i])
			text = strings.ReplaceAll(text, edits[i], edits[i+1])
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(edits); i += 2 {
		if !found[i] {
			t.Fatalf("deploy/%s has no %q any more", name, edits[i])
		}
	}
	return dir
}

// nginxFrame is what a distribution has around the files.
const nginxFrame = `
daemon off; master_process off; pid pid; error_log stderr error;
events {}
http {
  access_log off;
  client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
  include tidegate/upstream.conf;
  include tidegate/example.conf;
}
`

func startNginx(t *testing.T, addr, door, origin string, edits ...string) {
	bin := testdep.Need(t, "nginx")
	files := deployed(t, "nginx", append([]string{
		"unix:/run/tidegate/check.sock;", door + ";", "listen 80;", "listen " + addr + ";", "127.0.0.1:9000", origin,
	}, edits...)...)
	dir := t.TempDir()
	if err := os.Symlink(files, filepath.Join(dir, "tidegate")); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(nginxFrame), 0o600); err != nil {
		t.Fatal(err)
	}
	testdep.Run(t, dir, bin, "-p", dir, "-c", conf, "-e", "stderr").Listens(t, "tcp", addr)
}

func startHAProxy(t *testing.T, addr, door, origin string, edits ...string) {
	bin := testdep.Need(t, "haproxy")
	if runtime.GOOS != "linux" {
		t.Skip("the files use abstract sockets, which only Linux has")
	}
	dir := deployed(t, "haproxy", append([]string{
		"abns@tidegate", "abns@" + addr, "bind :80", "bind " + addr, "127.0.0.1:9000", origin, "127.0.0.1:8081", door,
	}, edits...)...)
	testdep.Run(t, dir, bin, "-f", "haproxy.cfg", "-db").Listens(t, "tcp", addr)
}

func startCaddy(t *testing.T, addr, door, origin string, edits ...string) {
	runCaddy(t, "Caddyfile", addr, door, origin, edits...)
}

func startCaddyForwardAuth(t *testing.T, addr, door, origin string, edits ...string) {
	runCaddy(t, "forward_auth.Caddyfile", addr, door, origin, edits...)
}

func runCaddy(t *testing.T, file, addr, door, origin string, edits ...string) {
	bin := testdep.Need(t, "caddy")
	_, port, _ := strings.Cut(addr, ":")
	dir := deployed(t, "caddy", append([]string{
		":80 {", "{\n\tadmin off\n}\n:" + port + " {\n\tbind 127.0.0.1\n", "127.0.0.1:9000", origin, "127.0.0.1:8081", door,
	}, edits...)...)
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, dir)
	}
	testdep.Run(t, dir, bin, "run", "--adapter", "caddyfile", "--config", file).Listens(t, "tcp", addr)
}

// startTraefik waits until the routes are there, which Traefik reads after it listens; its
// API says so.
func startTraefik(t *testing.T, addr, door, origin string, edits ...string) {
	bin := testdep.Need(t, "traefik")
	api := "127.0.0.1:" + testdep.FreePort(t)
	dir := deployed(t, "traefik", append([]string{
		`":80"`, `"` + addr + `"`, "127.0.0.1:9000", origin, "127.0.0.1:8081", door, "127.0.0.1:8082", "127.0.0.1:" + testdep.FreePort(t),
		"entryPoints:\n  web", "api: { insecure: true }\nentryPoints:\n  traefik: { address: \"" + api + "\" }\n  web",
	}, edits...)...)
	testdep.Run(t, dir, bin, "--configFile=traefik.yaml").Listens(t, "tcp", addr)
	var err error
	if !testdep.Await(30*time.Second, func() bool {
		var res *http.Response
		if res, err = http.Get("http://" + api + "/api/http/routers/application@file"); err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}) {
		t.Fatalf("traefik has no routes: %v", err)
	}
}

// apacheFrame is what a distribution has around the files.
const apacheFrame = `
ServerRoot %[1]s
ServerName localhost
PidFile %[1]s/pid
ErrorLog /dev/stderr
DefaultRuntimeDir %[1]s
Mutex sem
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule lua_module /usr/lib/apache2/modules/mod_lua.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
`

func startApache(t *testing.T, addr, door, origin string, edits ...string) {
	bin := testdep.Need(t, "apache2")
	host, port, _ := strings.Cut(door, ":")
	dir := deployed(t, "apache", append([]string{
		"LuaScope thread\n", fmt.Sprintf(apacheFrame, "FOLDER") + "Listen " + addr + "\nLuaScope thread\n",
		"127.0.0.1:9000", origin, `"127.0.0.1", 8081`, fmt.Sprintf("%q, %s", host, port),
	}, edits...)...)
	conf := filepath.Join(dir, "tidegate.conf")
	raw, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "FOLDER", dir)
	text = strings.ReplaceAll(text, "tidegate.lua", filepath.Join(dir, "tidegate.lua"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testdep.Run(t, dir, bin, "-f", conf, "-X").Listens(t, "tcp", addr)
}
