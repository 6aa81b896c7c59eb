//go:build unix

package handover

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whatever is at the path of a socket stays, unless it is a socket that a dead process left.
func TestListenRemovesNothingButDeadSockets(t *testing.T) {
	f := func(name, want string, put func(path string) error) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			was, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			l, err := new(Heir).Listen("gateway", "unix", path)
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				l.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if is, err := os.Lstat(path); err != nil || !os.SameFile(is, was) || is.Mode() != was.Mode() { // a number of a file may be used again
				t.Errorf("what was there is gone: %v, %v", is, err)
			}
		})
	}
	const inPlace = "is in its place, which is not a socket"
	f("file", inPlace, func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) })
	f("empty file", inPlace, func(path string) error { return os.WriteFile(path, nil, 0o600) })
	f("empty folder", inPlace, func(path string) error { return os.Mkdir(path, 0o700) })
	f("pipe", inPlace, func(path string) error { return syscall.Mkfifo(path, 0o600) })
	f("link to a file", inPlace, func(path string) error {
		if err := os.WriteFile(path+"file", []byte("precious"), 0o600); err != nil {
			return err
		}
		return os.Symlink(path+"file", path)
	})
	f("link to nothing", inPlace, func(path string) error { return os.Symlink(path+"gone", path) })
	f("dead socket", "", deadSocket)
	f("link to a dead socket", "", func(path string) error {
		if err := deadSocket(path + "dead"); err != nil {
			return err
		}
		return os.Symlink(path+"dead", path)
	})
}

// deadSocket leaves what a process leaves that is killed.
func deadSocket(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l.Close()
}

// The advice for a port is not given for a socket.
func TestListenForbidden(t *testing.T) {
	f := func(network, address, want, not string) {
		t.Helper()
		err := cannotListen("gateway", network, address, syscall.EACCES)
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), not) {
			t.Errorf("%s: %v", address, err)
		}
	}
	f("tcp", ":80", "ports below 1024", "folder")
	f("unix", "/run/x/s", "may not write to its folder", "1024")
}

// A successor that does not come to serve leaves the sockets of its predecessor where they are. One
// that does has them, and removes those that it is not told to listen on.
func TestSocketFilesOfThePredecessor(t *testing.T) {
	for _, moved := range []bool{false, true} {
		for _, serves := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, "s")
			theirs, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := twin(theirs)
			if err != nil {
				t.Fatal(err)
			}
			h, _ := heirOf(t)
			h.sockets = []socket{{"gateway", ours}}
			address := path
			if moved {
				address = filepath.Join(dir, "t")
			}
			l, err := h.Listen("gateway", "unix", address)
			if err != nil {
				t.Fatal(err)
			}
			if serves {
				theirs.(*net.UnixListener).SetUnlinkOnClose(false)
				h.claimSockets()
				theirs.Close()
			}
			there := func(name string, want bool) {
				t.Helper()
				conn, err := net.Dial("unix", name)
				if err == nil {
					conn.Close()
				}
				if (err == nil) != want {
					t.Errorf("moved %v, serves %v: to connect to %s: %v", moved, serves, filepath.Base(name), err)
				}
			}
			there(path, !moved || !serves)
			there(address, true)
			l.Close()
			there(path, !serves)
			if _, err := os.Lstat(address); (err == nil) != (!serves && !moved) {
				t.Errorf("moved %v, serves %v: at the end: %v", moved, serves, err)
			}
			theirs.Close()
		}
	}
}

// A socket of systemd is taken wherever it listens, from a predecessor, too, and by every name. One of the
// predecessor's own is taken only where this process is told to listen.
func TestSocketsOfSystemdStay(t *testing.T) {
	for _, name := range []string{"gateway", ""} {
		for _, follows := range []bool{false, true} {
			for _, held := range []bool{false, true} {
				theirs, free := listen(t), listen(t)
				free.Close()
				h := &Heir{}
				if follows {
					h, _ = heirOf(t)
				}
				h.sockets, h.held = []socket{{name, theirs}}, make(map[string]bool)
				if held {
					h.held[name] = true
				}
				l, err := h.Listen("gateway", "tcp", free.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				l.Close()
				if got, want := l == theirs, held || !follows; got != want {
					t.Errorf("name %q, follows %v, held %v: it is taken: %v", name, follows, held, got)
				}
				if h.held["gateway"] != held || h.Held() != held {
					t.Errorf("name %q, follows %v, held %v: it passes on %v", name, follows, held, h.held)
				}
			}
		}
	}
}
