package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	startTime = 15 * time.Second // until a server answers
	stopTime  = 5 * time.Second  // until one that was told to end is killed
)

// server is a process of ours that listens.
type server struct {
	name    string
	address string
	cmd     *exec.Cmd
	log     string
	ended   chan struct{}
}

// startServer runs a program that is about to listen on address. What it says
// goes to a file in dir, which is shown when it does not come up.
func startServer(name, dir, address string, env []string, program string, args ...string) (*server, error) {
	s := &server{name: name, address: address, log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	s.cmd = exec.Command(program, args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, out, out
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.SysProcAttr = endWithUs()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// stop lets it end, and makes it. The term signal, since nginx that is killed
// leaves its workers behind.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// await returns once the server answers with the wanted status.
func (s *server) await(ctx context.Context, status int) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.probe(ctx, status)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return s.failure(errors.New("it has ended"))
		case <-ctx.Done():
			return s.failure(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// probe asks once and looks at the whole answer.
func (s *server) probe(ctx context.Context, status int) error {
	got, body, err := get(ctx, "http://"+s.address+loadPath)
	if err != nil {
		return err
	}
	if got != status || status == http.StatusOK && body != answer {
		return fmt.Errorf("%s answers %d %q, want %d", s.name, got, body, status)
	}
	return nil
}

func (s *server) failure(err error) error {
	said, _ := os.ReadFile(s.log)
	if last := bytes.TrimSpace(said[max(0, len(said)-2000):]); len(last) > 0 {
		return fmt.Errorf("%s does not come up: %w; it said:\n%s", s.name, err, last)
	}
	return fmt.Errorf("%s does not come up: %w", s.name, err)
}

// freeAddress is one on loopback that nobody listens on right now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
