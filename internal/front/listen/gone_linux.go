package listen

import (
	"net"
	"syscall"
	"unsafe"
)

// pollFd is the struct pollfd of poll(2), which package syscall does not have.
type pollFd struct {
	fd              int32
	events, revents int16
}

// What has happened to a socket, by poll(2).
const (
	pollError  = 0x8
	pollHangUp = 0x10
	pollGone   = 0x2000 // POLLRDHUP: the other side sends nothing more
)

// hasGone reports whether the other side has closed the connection, or its own half of it, whatever
// it has sent before that nobody has read yet.
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
		ask, now := pollFd{fd: int32(fd), events: pollGone}, syscall.Timespec{}
		n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&ask)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
		gone = n == 1 && ask.revents&(pollGone|pollHangUp|pollError) != 0
	})
	return gone || err != nil // it is closed on this side
}
