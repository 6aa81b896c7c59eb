package gateway

import (
	"errors"
	"net"
	"slices"
	"syscall"
)

// ownFaults are what this machine answers when it has no more to give, or does not let us:
// they say nothing of the upstream.
var ownFaults = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, // open files
	syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, // ports
	syscall.ENOBUFS, syscall.ENOMEM, // memory
	syscall.EPERM, syscall.EACCES, // a firewall or a sandbox here
}

// isOwnFault reports whether a connection could not be made because of this machine, or
// because the resolver did not answer. A name that does not exist is the upstream's.
func isOwnFault(err error) bool {
	var number syscall.Errno
	if errors.As(err, &number) && slices.Contains(ownFaults, number) {
		return true
	}
	var name *net.DNSError
	return errors.As(err, &name) && !name.IsNotFound
}

// reclaim closes the connections to upstreams that nobody uses, so that their files, ports
// and memory can be had.
func (g *Gateway) reclaim() {
	for _, u := range g.pool {
		u.closeIdle()
	}
}
