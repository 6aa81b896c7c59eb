package handover

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestInheritNothing(t *testing.T) {
	f := func(fds, pid string) {
		t.Helper()
		t.Setenv(envFDs, fds)
		t.Setenv(envPID, pid)
		t.Setenv(envNames, "gateway")
		h, err := Inherit()
		if err != nil || len(h.sockets) > 0 || h.Follows() {
			t.Errorf("%s=%s %s=%s: got %+v, %v", envFDs, fds, envPID, pid, h, err)
		}
		if left := os.Getenv(envFDs) + os.Getenv(envPID) + os.Getenv(envNames); left != "" {
			t.Errorf("the environment still says %q", left)
		}
	}
	f("", "")
	f("1", "1") // for another process
	f("1", "")
	f("0", strconv.Itoa(os.Getpid()))
}

func TestInheritNonsense(t *testing.T) {
	f := func(fds, want string) {
		t.Helper()
		t.Setenv(envFDs, fds)
		t.Setenv(envPID, strconv.Itoa(os.Getpid()))
		// The first file number is one that surely is not open.
		if _, err := inherit(1 << 20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%s: error %v, want one about %s", envFDs, fds, err, want)
		}
	}
	f("many", "not a valid number of sockets")
	f("-1", "not a valid number of sockets")
	f("1000000", "not a valid number of sockets")
	f("1", "file 1048576")
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Sockets of systemd stay its own over all successors, also when the first predecessor is an earlier version.
func TestHeldSockets(t *testing.T) {
	f := func(name, heir, held string, want bool) {
		t.Helper()
		if got := isHeld(name, heir, held); got != want {
			t.Errorf("%q, %s=%q, %s=%q: held %v, want %v", name, envHeir, heir, envHeld, held, got, want)
		}
	}
	f("gateway", "", "", true) // from systemd itself
	f("gateway", heirYes, "gateway", true)
	f("gateway", heirYes, "admin:gateway", true)
	f("resp", heirYes, "admin:gateway", false)
	f("gateway", heirYes, "", false)
	f("gateway", "held", "", true) // said by earlier versions, of all or none
	f("gateway", "own", "", false)
}

func TestSocketsByName(t *testing.T) {
	a, b := listen(t), listen(t)
	h := &Heir{sockets: []socket{{"admin", a}, {"gateway", b}}}
	if h.take("gateway") != b || h.take("gateway") != nil || h.take("admin") != a {
		t.Error("sockets are not found by their names")
	}
	h = &Heir{sockets: []socket{{"", a}}}
	if h.take("gateway") != a || h.take("admin") != nil {
		t.Error("a single socket without a name is not for who asks first")
	}
	h = &Heir{sockets: []socket{{"", a}, {"", b}}}
	if h.take("gateway") != nil {
		t.Error("of two sockets without names, one is taken")
	}
	if unused := h.Unused(); len(unused) != 2 || !strings.Contains(unused[0], a.Addr().String()) {
		t.Errorf("unused: %q", unused)
	}
	for i, want := range []string{"gateway", "", "", ""} {
		if got := nameOf("gateway:tidegate.socket:unknown", i); got != want {
			t.Errorf("socket %d is called %q, want %q", i, got, want)
		}
	}
}

func TestListensOn(t *testing.T) {
	f := func(at, address string, want bool) {
		t.Helper()
		addr, err := net.ResolveTCPAddr("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if got := listensOn(addr, "tcp", address); got != want {
			t.Errorf("a socket at %s is one on %s: %v, want %v", at, address, got, want)
		}
	}
	f("127.0.0.1:8080", "127.0.0.1:8080", true)
	f("127.0.0.1:40321", "127.0.0.1:0", true)
	f("127.0.0.1:8080", "127.0.0.1:8081", false)
	f("127.0.0.1:8080", ":8080", false)
	f("[::]:8080", ":8080", true)
	f("[::]:8080", "0.0.0.0:8080", true)
	f("[::]:8080", "127.0.0.1:8080", false)
	f("[::1]:8080", "[::1]:8080", true)
	f("127.0.0.1:8080", "localhost:8080", true)
	f("127.0.0.1:8080", "192.0.2.1:8080", false)

	socket := &net.UnixAddr{Name: "/run/a.sock", Net: "unix"}
	if !listensOn(socket, "unix", "/run/a.sock") || listensOn(socket, "unix", "/run/b.sock") || listensOn(socket, "tcp", "127.0.0.1:80") {
		t.Error("Unix sockets are not told apart")
	}
}

func TestListenSaysWhatToDo(t *testing.T) {
	h := &Heir{}
	taken := listen(t).Addr().String()
	if _, err := h.Listen("gateway", "tcp", taken); err == nil || !strings.Contains(err.Error(), "another program does") || !strings.Contains(err.Error(), "--listen.gateway") {
		t.Errorf("error %v", err)
	}
	path := filepath.Join(t.TempDir(), "s")
	alive, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	if _, err := h.Listen("gateway", "unix", path); err == nil || !strings.Contains(err.Error(), "another program does") {
		t.Errorf("the socket of a living process: error %v", err)
	}
}

func TestNotify(t *testing.T) {
	if err := notify("READY=1"); err != nil { // nobody wants to know
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv(envNotify, path)
	if err := notify("MAINPID=42", "READY=1"); err != nil {
		t.Fatal(err)
	}
	var room [100]byte
	if n, err := l.Read(room[:]); err != nil || string(room[:n]) != "MAINPID=42\nREADY=1" {
		t.Errorf("systemd was told %q (%v)", room[:n], err)
	}
	t.Setenv(envNotify, path+"-gone")
	if err := notify("READY=1"); err == nil {
		t.Error("nobody heard it, and there is no error")
	}
}
