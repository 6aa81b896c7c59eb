package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// openTerminal returns both ends of a terminal; a command gets the second one.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		testdep.Missing(t, "/dev/ptmx", err.Error())
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// startOn starts a command on a terminal, which it need not share with anybody.
func startOn(t *testing.T, slave *os.File, c *exec.Cmd) {
	t.Helper()
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

// terminal starts a command on a terminal of its own and returns the other end of it.
func terminal(t *testing.T, c *exec.Cmd) *os.File {
	t.Helper()
	master, slave := openTerminal(t)
	startOn(t, slave, c)
	_ = slave.Close()
	return master
}

// shownOn collects what is shown on a terminal.
func shownOn(tty *os.File) *output {
	out := new(output)
	go func() {
		piece := make([]byte, 4096)
		for {
			n, err := tty.Read(piece)
			_, _ = out.Write(piece[:n])
			if err != nil {
				return
			}
		}
	}()
	return out
}

// On a real terminal, init asks and writes.
func TestInitOnATerminal(t *testing.T) {
	folder := t.TempDir()
	tty := terminal(t, exec.Command(theCommand(t), "init", "--redis", "none", folder))
	out := shownOn(tty)
	for _, turn := range [][2]string{
		{"Where is the server to protect?", ""},
		{"Which requests are limited?", "/api/"},
		{"Who is counted", "nobody"},
		{"write ip, user or api-key", "ip"},
		{"How much may each do?", "7/minute"},
		{"Which request is a login", ""},
		{"In which networks", ""},
	} {
		out.await(t, turn[0])
		if _, err := tty.WriteString(turn[1] + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	out.await(t, "Written: ")
	initiated(t, folder)
	if text, err := os.ReadFile(filepath.Join(folder, rulesFile)); err != nil || !strings.Contains(string(text), "limits: 7/minute") || !strings.Contains(string(text), "match: /api/") {
		t.Errorf("%v: %s", err, text)
	}
}

// In a bash that somebody types into, the tab key completes.
func TestTabInBash(t *testing.T) {
	c := exec.Command(testdep.Need(t, "bash"), "--norc", "--noprofile", "-i")
	c.Dir = completedFolder(t)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.Dir, "TERM=dumb", "PS1=ready> ", "INPUTRC=/dev/null", "LC_ALL=C"}
	tty := terminal(t, c)
	out := shownOn(tty)
	send := func(text string) {
		t.Helper()
		if _, err := tty.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	out.await(t, "ready> ")
	send("bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; source '" + completionScript(t, "bash") + "'; echo sour''ced\n")
	out.await(t, "sourced")
	for i, typed := range []struct{ keys, want string }{
		{"tidegate com\t bash", "tidegate completion bash"},
		{"tidegate lint --str\tn\t", "tidegate lint --strict n"}, // no rule file begins with n
		{"tidegate lint my\t", "tidegate lint my rules.yml"},
		{"tidegate lint --format=sa\trules.\t", "tidegate lint --format=sarif rules.yaml"},
		{"tidegate test ru\t", "tidegate test rules_test.yaml"},
		{"tidegate serve --log.le\twa\t", "tidegate serve --log.level warn"},
		{"tidegate lint su\tmo\t", "tidegate lint sub/more.yaml"},
	} {
		mark := fmt.Sprintf("line %d is", i)
		// Ctrl-A and Ctrl-E make of the line the argument of an echo, which shows what bash read.
		send(typed.keys + "\x01echo '" + mark[:4] + "''" + mark[4:] + "' \x05\n")
		out.await(t, mark+" "+typed.want+"\r\n")
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if shown := out.buf.String(); strings.Contains(shown, "bash: ") {
		t.Errorf("bash complains:\n%s", shown)
	}
}
