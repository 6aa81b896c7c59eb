package testdep

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout is how long a server may take for what it does in no time when the
// machine is idle.
const startTimeout = time.Minute

// RedisServer is a redis-server that a test has started. It ends with the test, and
// with the process of the test.
type RedisServer struct {
	Addr   string // 127.0.0.1 with a port of its own
	Socket string // the same by a unix socket

	t    testing.TB
	args []string
	log  string
	mu   sync.Mutex
	cmd  *exec.Cmd     // nil means not running
	done chan struct{} // closed when it has ended
}

// Redis starts a redis-server that keeps nothing on disk, on a port of its own, with
// more arguments such as "--maxmemory", "10mb".
func Redis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t, args...)
	r.Start()
	return r
}

func newRedis(t testing.TB, args ...string) *RedisServer {
	t.Helper()
	Need(t, "redis-server")
	dir, err := os.MkdirTemp("", "redis") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := FreePort(t)
	r := &RedisServer{t: t, Addr: "127.0.0.1:" + port, Socket: filepath.Join(dir, "redis.sock"), log: filepath.Join(dir, "log")}
	r.args = append([]string{
		"--port", port, "--unixsocket", r.Socket, "--dir", dir, "--logfile", r.log,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--enable-debug-command", "yes",
	}, args...)
	t.Cleanup(r.Kill)
	return r
}

// Start starts the server if it does not run, and waits until it answers.
func (r *RedisServer) Start() {
	r.t.Helper()
	r.launch("redis-server", r.args)
	r.wait("PONG", "PING")
}

// launch runs a program until it ends. The thread that starts it stays as long: where
// the system ends children with their parents, the parent is a thread.
func (r *RedisServer) launch(program string, args []string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		return
	}
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = dieWithParent()
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(done)
	}()
	if err := <-started; err != nil {
		r.t.Fatal(err)
	}
	r.cmd, r.done = cmd, done
}

// Kill ends the server at once, as kill -9 does.
func (r *RedisServer) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	<-r.done
	r.cmd = nil
}

// Pause stops the server without closing its connections, until Resume.
func (r *RedisServer) Pause() { r.signal(pauseSignal) }

// Resume lets a paused server go on.
func (r *RedisServer) Resume() { r.signal(resumeSignal) }

func (r *RedisServer) signal(s os.Signal) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		r.t.Fatalf("redis-server at %s does not run", r.Addr)
	}
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// runs reports whether the server has not ended, by itself or by Kill.
func (r *RedisServer) runs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// wait asks until the answer has a word in it.
func (r *RedisServer) wait(word string, command ...string) {
	r.t.Helper()
	var got string
	var err error
	for end := time.Now().Add(startTimeout); time.Now().Before(end) && r.runs(); time.Sleep(10 * time.Millisecond) {
		if got, err = r.Try(command...); err == nil && strings.Contains(got, word) {
			return
		}
	}
	log, _ := os.ReadFile(r.log)
	r.t.Fatalf("redis-server at %s: %v is answered %q (%v), want %q\n%s", r.Addr, command, got, err, word, log)
}

// Do sends a command on a connection of its own and returns the answer, of several
// values one per line. An error of Redis ends the test.
func (r *RedisServer) Do(command ...string) string {
	r.t.Helper()
	got, err := r.Try(command...)
	if err != nil {
		r.t.Fatalf("redis-server at %s: %v: %v", r.Addr, command, err)
	}
	return got
}

// Try is Do for commands that may fail.
func (r *RedisServer) Try(command ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	request := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	return readAnswer(bufio.NewReader(conn))
}

func readAnswer(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	sign, line := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(line)
	switch sign {
	case '-':
		return "", fmt.Errorf("%s", line)
	case '$':
		if n < 0 {
			return "", nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(in, b)
		return string(b[:n]), err
	case '*':
		var all []string
		for range n {
			one, err := readAnswer(in)
			if err != nil {
				return "", err
			}
			all = append(all, one)
		}
		return strings.Join(all, "\n"), nil
	}
	return line, nil
}

// RedisFile starts a redis-server with a configuration file, and more arguments; it is
// on a port of its own, whatever the file says.
func RedisFile(t testing.TB, file string, args ...string) *RedisServer {
	t.Helper()
	r := newRedis(t)
	_, port, _ := net.SplitHostPort(r.Addr)
	r.args = append([]string{file, "--port", port, "--logfile", r.log, "--daemonize", "no"}, args...)
	r.Start()
	return r
}
