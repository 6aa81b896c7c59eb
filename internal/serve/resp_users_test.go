//go:build unix

package serve

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// hookedListener calls first before it accepts.
type hookedListener struct {
	net.Listener
	first func()
}

func (l hookedListener) Accept() (net.Conn, error) {
	l.first()
	return l.Listener.Accept()
}

// Users that are read again while the listener opens are in force, as those are that change later.
func TestUsersThatChangeAtTheStart(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nothing else runs before the listener accepts
	s := openServer(t, map[string]string{"rules.yaml": handoverRules})
	file := filepath.Join(t.TempDir(), "users")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(name+" a-password-that-is-long-enough\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ann")
	var err error
	if s.respDoor.users, err = followFile("users", file, readUsers, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.openRESP()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var once sync.Once
	go func() {
		_ = server.Serve(hookedListener{l, func() { once.Do(func() { write("bob"); s.respDoor.users.again() }) }})
	}()
	var line string
	var said error
	if !testdep.Await(testTimeout, func() bool {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "AUTH bob a-password-that-is-long-enough\r\n")
		defer conn.Close()
		line, said = bufio.NewReader(conn).ReadString('\n')
		return line == "+OK\r\n"
	}) {
		t.Fatalf("the new user is answered %q, %v", line, said)
	}
}
