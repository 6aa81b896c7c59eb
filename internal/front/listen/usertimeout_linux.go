package listen

import (
	"net"
	"syscall"
	"time"
)

const tcpUserTimeout = 18 // TCP_USER_TIMEOUT, which package syscall does not have

// setUserTimeout lets the kernel close a TCP connection whose client has not acknowledged for d
// what was written to it: a small response fits the kernel's buffer, so that no write of ours
// waits for the client.
func setUserTimeout(c net.Conn, d time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it, the idle timeout closes the connection
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(min(d.Milliseconds(), 1<<31-1)))
	})
}
