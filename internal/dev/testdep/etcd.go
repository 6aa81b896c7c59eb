package testdep

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// EtcdServer is an etcd that a test has started. It ends with the test, and with the process
// of the test.
type EtcdServer struct {
	Addr string // 127.0.0.1 with a port of its own

	t       testing.TB
	args    []string
	dir     string
	health  string   // URL
	program *Program // nil means not running
}

// Etcd starts an etcd of one member, on a port of its own, with more arguments such as
// "--max-txn-ops", "1000".
func Etcd(t testing.TB, args ...string) *EtcdServer {
	t.Helper()
	Need(t, "etcd")
	e := &EtcdServer{t: t, Addr: "127.0.0.1:" + FreePort(t), dir: t.TempDir()}
	scheme, peer, metrics := "http", "http://127.0.0.1:"+FreePort(t), "http://127.0.0.1:"+FreePort(t)
	e.health = metrics + "/health"
	if strings.Contains(strings.Join(args, " "), "--cert-file") {
		scheme = "https"
	}
	client := fmt.Sprintf("%s://%s", scheme, e.Addr)
	e.args = append([]string{
		"--name", "m", "--data-dir", filepath.Join(e.dir, "data"), "--log-level", "error", "--logger", "zap",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m=" + peer,
		"--listen-metrics-urls", metrics,
	}, args...)
	e.Start()
	return e
}

// Start starts the server if it does not run, with what it kept on disk, and waits until it
// answers.
func (e *EtcdServer) Start() {
	e.t.Helper()
	if e.program != nil {
		return
	}
	e.program = Run(e.t, e.dir, "etcd", e.args...)
	e.program.Listens(e.t, "tcp", e.Addr)
	for end := time.Now().Add(startTimeout); !e.healthy(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			e.t.Fatalf("etcd at %s has no leader", e.Addr)
		}
	}
}

func (e *EtcdServer) healthy() bool {
	answer, err := http.Get(e.health)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return err == nil && strings.Contains(string(text), `"health":"true"`)
}

// Kill ends the server at once, as kill -9 does.
func (e *EtcdServer) Kill() {
	if e.program != nil {
		e.program.Kill()
		e.program = nil
	}
}
