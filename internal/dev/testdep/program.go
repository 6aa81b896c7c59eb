package testdep

import (
	"bytes"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Program is a program that a test has started. It ends with the test, and with the
// process of the test. If the test fails, what it printed is logged.
type Program struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Run starts a program in a folder.
func Run(t testing.TB, dir, program string, args ...string) *Program {
	t.Helper()
	output := new(Output)
	p := &Program{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = dir, output, output, dieWithParent()
	started := make(chan error)
	go func() { // where the system ends children with their parents, the parent is a thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() && output.String() != "" {
			t.Logf("%s printed:\n%s", program, output)
		}
	})
	return p
}

// Kill ends the program at once, as kill -9 does.
func (p *Program) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Listens waits until somebody listens on an address that the program was told of.
func (p *Program) Listens(t testing.TB, network, addr string) {
	t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-p.done:
			t.Fatalf("%s ended: %v", p.cmd.Path, p.cmd.ProcessState)
		default:
		}
	}
	t.Fatalf("%s does not listen on %s", p.cmd.Path, addr)
}

// Output is what was written, and may be read meanwhile.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Output) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all that was written so far.
func (l *Output) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
