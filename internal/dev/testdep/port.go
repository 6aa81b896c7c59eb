package testdep

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// FreePort returns a port of 127.0.0.1 that nobody listens on. Until the test ends no other test gets
// it, also in another process and while nobody listens on it.
func FreePort(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		// No process is given one of these by chance: those who listen on port 0, and connections,
		// get one of the ephemeral ports, which begin at 32768.
		port := 10_000 + rand.IntN(22_000)
		if !reserve(port) {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err != nil {
			release(port)
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { release(port) })
		return strconv.Itoa(port)
	}
	t.Fatalf("no port is free: %v", err)
	return ""
}

// reserved are the ports that tests of this process have.
var reserved = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

func reserve(port int) bool {
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.ports[port] || !lockPort(port, true) {
		return false
	}
	reserved.ports[port] = true
	return true
}

func release(port int) {
	reserved.Lock()
	defer reserved.Unlock()
	lockPort(port, false)
	delete(reserved.ports, port)
}
