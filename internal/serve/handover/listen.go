package handover

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// Listen returns the inherited socket of that name, or else a new one on the
// address. A socket from systemd is taken wherever it listens. One from a
// predecessor is taken if it listens on the address, which may be another than
// the predecessor was told.
func (h *Heir) Listen(name, network, address string) (net.Listener, error) {
	if l := h.take(name); l != nil {
		if !h.Follows() {
			return l, nil
		}
		if u, ok := l.(*net.UnixListener); ok && !h.held {
			u.SetUnlinkOnClose(true) // the file was the predecessor's, and is ours
		}
		if listensOn(l.Addr(), network, address) {
			return l, nil
		}
		l.Close()
	}
	l, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) && network == "unix" && abandoned(address) {
		if err = os.Remove(address); err == nil {
			l, err = net.Listen(network, address)
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: another program does; end it, or choose another address with --listen.%s", address, name)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: %w; ports below 1024 need the right to (systemd gives it with AmbientCapabilities=CAP_NET_BIND_SERVICE, or listens itself: see deploy/systemd)", address, syscall.EACCES)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return l, nil
}

// abandoned reports whether a socket file is left over from a process that died.
func abandoned(path string) bool {
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listensOn reports whether a socket at addr is what to listen on the address
// would give.
func listensOn(addr net.Addr, network, address string) bool {
	if network != addr.Network() {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String() == address
	}
	want, err := net.ResolveTCPAddr(network, address)
	if err != nil || want.Port != 0 && want.Port != tcp.Port {
		return false
	}
	return sameIP(want.AddrPort().Addr(), tcp.AddrPort().Addr())
}

// sameIP takes 0.0.0.0, :: and none for the same: every address of the machine.
func sameIP(a, b netip.Addr) bool {
	a, b = a.Unmap(), b.Unmap()
	all := func(ip netip.Addr) bool { return !ip.IsValid() || ip.IsUnspecified() }
	return a == b || all(a) && all(b)
}
