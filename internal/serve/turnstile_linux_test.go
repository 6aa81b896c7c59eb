package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// turnstile passes connections on to a server, except for those of one process: so one of
// several that use the same address can be cut off.
type turnstile struct {
	addr, to string

	mu     sync.Mutex
	locked int // the process; 0 means none
	open   map[net.Conn]int
}

func newTurnstile(t testing.TB, to string) *turnstile {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &turnstile{addr: l.Addr().String(), to: to, open: make(map[net.Conn]int)}
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		s.drop(func(int) bool { return true })
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.pass(conn) })
		}
	})
	return s
}

// lock lets a process in no longer, and drops its connections; 0 lets everybody in.
func (s *turnstile) lock(pid int) {
	s.mu.Lock()
	s.locked = pid
	s.mu.Unlock()
	s.drop(func(of int) bool { return of == pid })
}

func (s *turnstile) drop(which func(pid int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, pid := range s.open {
		if which(pid) {
			conn.Close()
		}
	}
}

func (s *turnstile) pass(conn net.Conn) {
	defer conn.Close()
	pid := pidOf(conn.RemoteAddr().(*net.TCPAddr).Port, conn.LocalAddr().(*net.TCPAddr).Port)
	s.mu.Lock()
	refused := s.locked != 0 && pid == s.locked
	s.open[conn] = pid
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
	}()
	if refused {
		return
	}
	server, err := net.Dial("tcp", s.to)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(server, conn) // whichever side ends, both are closed
		server.Close()
		close(done)
	}()
	_, _ = io.Copy(conn, server)
	conn.Close()
	<-done
}

// pidOf returns the process with a connection between two ports of this machine; 0 if there is
// none.
func pidOf(from, to int) int {
	text, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0
	}
	defer text.Close()
	inode := ""
	local, remote := fmt.Sprintf("0100007F:%04X", from), fmt.Sprintf("0100007F:%04X", to)
	for lines := bufio.NewScanner(text); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[1] == local && fields[2] == remote {
			inode = fields[9]
		}
	}
	if inode == "" {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			var pid int
			if _, err := fmt.Sscanf(link, "/proc/%d/", &pid); err == nil {
				return pid
			}
		}
	}
	return 0
}
