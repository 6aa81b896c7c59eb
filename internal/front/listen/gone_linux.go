package listen

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// canSeeGone says that hasGone works on this system.
const canSeeGone = true

// hasGone reports whether the other side has closed the connection, or its own half of it, even if
// what it sent before is not read yet.
func hasGone(c net.Conn) bool {
	open, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, _ := unix.Poll(asked, 0) // after an error it is asked again a moment later
		gone = n == 1 && asked[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil // it is closed on this side
}
