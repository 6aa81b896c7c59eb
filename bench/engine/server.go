package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/go-chi/httprate"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/process"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// targetNames are what the server serves, the measure of the others first.
var targetNames = []string{"bare", "tidegate", "httprate", "control"}

var targetLabels = map[string]string{
	"bare":     "bare handler",
	"tidegate": "httplimit.Limit(lim, httplimit.IP())",
	"httprate": "go-chi/httprate LimitBy, remote address",
	"control":  "bare handler again, as a control",
}

func targets() map[string]http.Handler {
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":42,"name":"Anne","active":true}`)
	})
	// Above what two cores can serve: every request is counted and passes.
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{
		Events: 1_000_000, Period: time.Second, Algorithm: tidegate.TokenBucket,
	}))
	return map[string]http.Handler{
		"bare":     bare,
		"tidegate": httplimit.Limit(lim, httplimit.IP())(bare),
		"httprate": httprate.LimitBy(1_000_000, time.Second, remoteIP)(bare),
		"control":  bare,
	}
}

// remoteIP returns the peer's address, as httprate's deprecated KeyByIP does: here nobody is behind a
// proxy.
func remoteIP(r *http.Request) (string, error) {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "", err
	}
	return httprate.CanonicalizeIP(ip), nil
}

// serveChild runs in the child process: it serves each target on a port of its own until its parent
// ends it.
func serveChild(ctx context.Context) error {
	addresses := make(map[string]string)
	failed := make(chan error, len(targetNames))
	for name, handler := range targets() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
		defer srv.Close()
		go func() { failed <- srv.Serve(l) }()
		addresses[name] = l.Addr().String()
	}
	if err := process.Answer(addresses); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// server is the parent's hold on that child.
type server struct {
	addresses map[string]string
	cmd       *exec.Cmd
	stdin     io.Closer
}

func startServer(ctx context.Context) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to run it again: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "-child", "serve")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s := &server{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.addresses)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("the server did not say where it listens: %w", err)
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}
