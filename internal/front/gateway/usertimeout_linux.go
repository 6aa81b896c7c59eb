package gateway

import (
	"net"
	"syscall"
	"time"
)

const tcpUserTimeout = 18 // TCP_USER_TIMEOUT, which package syscall does not name

// setUserTimeout has the kernel end a TCP connection whose client does not take for that
// long what was written to it: a small answer fits the kernel's buffer, and no write of
// ours ever waits for the client.
func setUserTimeout(c net.Conn, d time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it, limits.idle ends the connection
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(min(d.Milliseconds(), 1<<31-1)))
	})
}
