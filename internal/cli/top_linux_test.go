package cli

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tidegate.dev/tidegate/internal/front/admin"
)

func modeOf(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

// On a real terminal, top draws, fits a window of another size at once, does nothing on other
// keys, and leaves the terminal as it was, whichever way it ends.
func TestTopOnATerminal(t *testing.T) {
	server := httptest.NewServer(admin.New(operated(t, nil)))
	defer server.Close()
	tidegate := theCommand(t)
	f := func(name string, leave func(c *exec.Cmd, tty *os.File) error) {
		t.Run(name, func(t *testing.T) {
			tty, slave := openTerminal(t)
			before := modeOf(t, slave)
			// Within an hour, only a resize has it drawn again.
			c := exec.Command(tidegate, "top", "--server", server.URL, "--every", "1h")
			c.Env = append(os.Environ(), "TERM=xterm")
			startOn(t, slave, c)
			out := shownOn(tty)
			const last = "no bans or overrides are in force"
			out.await(t, last)
			if mode := modeOf(t, slave); mode.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
				t.Errorf("keys are not read one by one: local modes %#x", mode.Lflag)
			}
			resize := func(rows uint16) {
				if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 80}); err != nil {
					t.Fatal(err)
				}
			}
			resize(5)
			out.await(t, " more lines")
			resize(50)
			out.awaitTimes(t, last, 2)
			if err := leave(c, tty); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			out.await(t, "\x1b[?25h\x1b[?1049l")
			out.awaitTimes(t, last, 2)
			if after := modeOf(t, slave); after != before {
				t.Errorf("the terminal is left as\n%+v, and was\n%+v", after, before)
			}
		})
	}
	key := func(key string) func(*exec.Cmd, *os.File) error {
		return func(_ *exec.Cmd, tty *os.File) error {
			_, err := tty.WriteString(key)
			return err
		}
	}
	f("q", key("xyz\x1aq")) // Ctrl-Z is a key, too
	f("Ctrl-C", key("xyz\x1a\x03"))
	f("SIGTERM", func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGTERM) })
}

// A terminal that knows no sequences is written to like a file.
func TestTopOnADumbTerminal(t *testing.T) {
	server := httptest.NewServer(admin.New(operated(t, nil)))
	defer server.Close()
	tty, slave := openTerminal(t)
	before := modeOf(t, slave)
	c := exec.Command(theCommand(t), "top", "--server", server.URL, "--every", "100ms")
	c.Env = append(os.Environ(), "TERM=dumb", "NO_COLOR=1")
	startOn(t, slave, c)
	out := shownOn(tty)
	out.awaitTimes(t, "no bans or overrides are in force", 3)
	if mode := modeOf(t, slave); mode != before {
		t.Errorf("it changed the mode to\n%+v", mode)
	}
	if _, err := tty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	for _, b := range out.buf.Bytes() {
		if b == '\x1b' {
			t.Fatalf("it wrote a sequence: %q", out.buf.String())
		}
	}
}
