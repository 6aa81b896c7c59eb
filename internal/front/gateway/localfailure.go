package gateway

import (
	"errors"
	"net"
	"slices"
	"syscall"
)

// localFailures are errors of this machine, out of resources or not permitted. They say nothing
// about the upstream.
var localFailures = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, // open files
	syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, // ports
	syscall.ENOBUFS, syscall.ENOMEM, // memory
	syscall.EPERM, syscall.EACCES, // a firewall or a sandbox here
}

// isLocalFailure reports whether a connection failed because of this machine, or because the
// resolver did not answer. A name that does not exist is the upstream's fault.
func isLocalFailure(err error) bool {
	var number syscall.Errno
	if errors.As(err, &number) && slices.Contains(localFailures, number) {
		return true
	}
	var name *net.DNSError
	return errors.As(err, &name) && !name.IsNotFound
}

// reclaim closes idle connections to upstreams, to free their files, ports and memory.
func (g *Gateway) reclaim() {
	for _, u := range g.pool {
		u.closeIdle()
	}
}
