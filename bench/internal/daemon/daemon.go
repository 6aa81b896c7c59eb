// Package daemon runs servers of others for the length of a rig: on loopback, in a folder of
// their own, ended with the program that started them. Start with [Start].
package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	startTime = 15 * time.Second // until a server answers
	stopTime  = 5 * time.Second  // until one that was told to end is killed
)

// Server is a process of ours that listens.
type Server struct {
	Name    string
	Address string
	PID     int
	Log     string // the file with what it says

	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs a program that is about to listen on address. What it says
// goes to a file in dir, which is shown when it does not come up. The calling goroutine
// must be locked to a thread that lives as long as the server.
func Start(name, dir, address string, env []string, program string, args ...string) (*Server, error) {
	s := &Server{Name: name, Address: address, Log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	out, err := os.Create(s.Log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer out.Close()
	s.cmd = exec.Command(program, args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, out, out
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.SysProcAttr = EndWithUs()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// Stop lets it end, and makes it. The term signal, since nginx that is killed
// leaves its workers behind.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopTime):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// Await returns once probe finds nothing wrong.
func (s *Server) Await(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := probe(ctx)
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

func (s *Server) failure(err error) error {
	output, _ := os.ReadFile(s.Log)
	if last := bytes.TrimSpace(output[max(0, len(output)-2000):]); len(last) > 0 {
		return fmt.Errorf("%s does not come up: %w; it said:\n%s", s.Name, err, last)
	}
	return fmt.Errorf("%s does not come up: %w", s.Name, err)
}

// Folder makes a folder below parent for the server with this name, and finds it an address.
func Folder(parent, name string) (dir, address string, err error) {
	dir = filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", "", err
	}
	address, err = FreeAddress()
	return dir, address, err
}

// FreeAddress is one on loopback that nobody listens on right now. Its port is below those that
// systems hand out for connections and for listeners that do not care: nobody gets it before the
// server that it is for.
func FreeAddress() (address string, err error) {
	const first, ports = 12_000, 20_000
	for range 100 {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(ports)))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}
