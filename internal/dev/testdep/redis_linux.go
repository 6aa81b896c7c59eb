package testdep

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// dieWithParent makes a child end when its parent does, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// queued returns how long the server has been ready to run and waited for a processor, in all.
// It is 0 where the kernel does not count that, and while the server does not run.
func (r *RedisServer) queued() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd == nil {
		return 0
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", r.cmd.Process.Pid))
	fields := bytes.Fields(text) // nanoseconds on a processor, nanoseconds in the queue, turns
	if len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ns)
}
