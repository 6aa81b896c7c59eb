//go:build linux

package image

import (
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// TestImage builds the file system of the image once: that takes a while.
func TestImage(t *testing.T) {
	if os.Geteuid() != 0 {
		testdep.Missing(t, "root", "chroot, and running as another user, need it")
	}
	r := build(t)
	for _, c := range []struct {
		name string
		run  func(*rootfs)
	}{
		{"nothing to write to", testUnwritable}, // before anything is written
		{"static", testStatic},
		{"settings", testSettings},
		{"serves", testServes},
		{"compose", testCompose},
		{"page", testPage},
		{"authorities", testAuthorities},
	} {
		t.Run(c.name, func(t *testing.T) {
			same := *r
			same.T = t
			c.run(&same)
		})
	}
}

// A dynamic binary would not start: the image has no loader.
func testStatic(r *rootfs) {
	f, err := elf.Open(filepath.Join(r.dir, r.command[0]))
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			r.Error("the binary needs a loader")
		}
	}
	if libraries, err := f.ImportedLibraries(); len(libraries) > 0 {
		r.Errorf("the binary needs %q (%v)", libraries, err)
	}
}

// The process owns nothing but the folder of its state, so the root can be read-only.
func testUnwritable(r *rootfs) {
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, r.dir)
		owned := info.Sys().(*syscall.Stat_t).Uid == r.uid
		if owned != (name == "/var/lib/tidegate") || info.Mode().Perm()&0o022 != 0 {
			r.Errorf("%q is owned by the user: %t, mode %v", name, owned, info.Mode())
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// Clients outside the container reach the gateway, operators do not without a token.
func testSettings(r *rootfs) {
	cmd, out := r.run(nil, r.command[0], "config")
	if err := cmd.Run(); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"gateway: :8080 ", "admin: 127.0.0.1:9090 "} {
		if !strings.Contains(out.String(), want) {
			r.Errorf("the settings do not have %q:\n%s", want, out)
		}
	}
}

const rules = "version: 1\nrules: [{ name: site, per: ip, limits: 3/hour }]\n"

// serve starts the image's command on free ports, with more of an environment, and calls f
// when it is ready. The command then has to end at SIGTERM, as Docker sends it.
func (r *rootfs) serve(env []string, f func(gateway, admin string)) {
	r.Helper()
	gateway, admin := "127.0.0.1:"+testdep.FreePort(r.T), "127.0.0.1:"+testdep.FreePort(r.T)
	env = append(env, "TIDEGATE_LISTEN_GATEWAY="+gateway, "TIDEGATE_LISTEN_ADMIN="+admin)
	cmd, out := r.run(env, r.command...)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the process ends with the thread that started it
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		ended <- cmd.Wait()
	}()
	if err := <-started; err != nil {
		r.Fatal(err)
	}
	var stopped bool
	defer func() {
		if !stopped {
			_ = cmd.Process.Kill()
			<-ended
		}
	}()
	testdep.Eventually(r.T, "it is ready", func() bool {
		select {
		case err := <-ended:
			stopped = true
			r.Fatalf("it ended: %v\n%s", err, out)
		default:
		}
		return status(r.T, "http://"+admin+"/readyz") == http.StatusOK
	})
	f(gateway, admin)
	probe, said := r.run([]string{"TIDEGATE_SERVER=http://" + admin}, r.probe...)
	if err := probe.Run(); err != nil || said.String() != "ready\n" {
		r.Errorf("HEALTHCHECK %q: %v\n%s", r.probe, err, said)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.Fatal(err)
	}
	stopped = true
	if err := <-ended; err != nil {
		r.Errorf("at SIGTERM it ended with %v\n%s", err, out)
	}
	probe, said = r.run([]string{"TIDEGATE_SERVER=http://" + admin}, r.probe...)
	if err := probe.Run(); err == nil {
		r.Errorf("HEALTHCHECK of a process that is gone: %s", said)
	}
}

// status is 0 if there is no answer.
func status(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// mount puts a folder in the place of /etc/tidegate.
func (r *rootfs) mount(files fs.FS) {
	r.Helper()
	etc := filepath.Join(r.dir, "etc/tidegate")
	if err := os.Rename(etc, etc+".image"); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := os.RemoveAll(etc); err != nil {
			r.Error(err)
		}
		if err := os.Rename(etc+".image", etc); err != nil {
			r.Error(err)
		}
	})
	if err := os.CopyFS(etc, files); err != nil {
		r.Fatal(err)
	}
}

// limited asks for a page until it is refused.
func (r *rootfs) limited(url string, most int) {
	r.Helper()
	for n := range most + 1 {
		switch got := status(r.T, url); {
		case got == http.StatusTooManyRequests && n > 0:
			return
		case got != http.StatusOK:
			r.Fatalf("request %d: %d, want 200", n+1, got)
		}
	}
	r.Errorf("%d requests were admitted", most+1)
}

// The image serves by the rules beside its configuration, with a snapshot in its volume.
func testServes(r *rootfs) {
	conf := filepath.Join(r.dir, "etc/tidegate/rules.yaml")
	if err := os.WriteFile(conf, []byte(rules), 0o644); err != nil {
		r.Fatal(err)
	}
	defer os.Remove(conf)
	env := []string{"TIDEGATE_STORE_MEMORY_SNAPSHOT=/var/lib/tidegate/snapshot"}
	r.serve(env, func(gateway, _ string) { r.limited("http://"+gateway+"/", 3) })
	r.serve(env, func(gateway, _ string) {
		if got := status(r.T, "http://"+gateway+"/"); got != http.StatusTooManyRequests {
			r.Errorf("after a restart: %d, want 429", got)
		}
	})
}

// composeRedis returns the arguments that compose.yaml gives to redis-server.
func composeRedis(t *testing.T) (args []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "deploy/compose/compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ +command: \[redis-server, (.*)\]$`).FindStringSubmatch(string(raw))
	if m == nil {
		t.Fatal("compose.yaml does not start redis-server")
	}
	for _, arg := range strings.Split(m[1], ", ") {
		args = append(args, strings.Trim(arg, `"`))
	}
	return args
}

// The folder that compose.yaml mounts, with a Redis that has the settings it is given there.
func testCompose(r *rootfs) {
	redis := testdep.Redis(r.T, composeRedis(r.T)...)
	r.mount(os.DirFS(filepath.Join(repository, "deploy/compose/tidegate")))
	cmd, out := r.run(nil, r.command[0], "config")
	if err := cmd.Run(); err != nil {
		r.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"gateway: :8080 ", "redis: redis://redis:6379 "} {
		if !strings.Contains(out.String(), want) {
			r.Errorf("the settings do not have %q:\n%s", want, out)
		}
	}
	env := []string{"TIDEGATE_STORE_REDIS=redis://" + redis.Addr, "TIDEGATE_STORE_DEADLINE=10s"}
	r.serve(env, func(gateway, _ string) { r.limited("http://"+gateway+"/", 100) })
}

// The certificates of the public authorities are where the process looks for them.
func testAuthorities(r *rootfs) {
	bundle := filepath.Join(r.dir, "etc/ssl/certs/ca-certificates.crt")
	raw, err := os.ReadFile(bundle)
	if err != nil {
		r.Fatal(err)
	}
	if n := strings.Count(string(raw), "BEGIN CERTIFICATE"); n < 50 || !x509.NewCertPool().AppendCertsFromPEM(raw) {
		r.Errorf("the bundle has %d certificates", n)
	}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ready": true}`) }))
	defer srv.Close()
	ask := func() (string, error) {
		cmd, out := r.run(nil, r.command[0], "health", "--server", srv.URL)
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := ask(); err == nil || !strings.Contains(out, "unknown authority") {
		r.Errorf("a server of an unknown authority: %v, %s", err, out)
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(bundle, append(raw, own...), 0o644); err != nil {
		r.Fatal(err)
	}
	defer os.WriteFile(bundle, raw, 0o644)
	if out, err := ask(); err != nil {
		r.Errorf("a server of an authority in the bundle: %v, %s", err, out)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// docs/install.md shows the configuration of the image, and one for Kubernetes, whose probes
// have no token.
func testPage(r *rootfs) {
	page, err := os.ReadFile(filepath.Join(repository, "docs/install.md"))
	if err != nil {
		r.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(page), -1)
	own, err := os.ReadFile(filepath.Join(r.dir, "etc/tidegate/tidegate.yaml"))
	if err != nil || len(blocks) < 2 || blocks[0][1] != string(own) {
		r.Fatalf("the page does not show the configuration of the image (%v):\n%s", err, own)
	}
	r.mount(fstest.MapFS{"tidegate.yaml": {Data: []byte(blocks[1][1]), Mode: 0o644}})
	secrets := filepath.Join(r.dir, "run/secrets/tidegate")
	mkdirs(r.T, secrets)
	defer os.RemoveAll(filepath.Join(r.dir, "run"))
	if err := os.WriteFile(filepath.Join(secrets, "token"), []byte("0123456789abcdef"), 0o644); err != nil {
		r.Fatal(err)
	}
	cmd, out := r.run(nil, r.command[0], "config")
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "admin: :9090 ") {
		r.Errorf("%v\n%s", err, out)
	}
	r.serve(nil, func(_, admin string) {
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/rules": 401} {
			if got := status(r.T, "http://"+admin+path); got != want {
				r.Errorf("%s without a token: %d, want %d", path, got, want)
			}
		}
	})
}
