package handover

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// Listen returns the inherited socket of that name, or else a new one on the address. A socket that
// systemd holds is used whatever its address is. Another socket from a predecessor is used only if
// it listens on this address: the configuration may have changed.
func (h *Heir) Listen(name, network, address string) (net.Listener, error) {
	if l := h.take(name); l != nil {
		if h.held[name] || !h.Follows() {
			return l, nil
		}
		fits := listensOn(l.Addr(), network, address)
		if u, ok := l.(*net.UnixListener); ok {
			h.sockFiles = append(h.sockFiles, sockFile{u, fits})
		}
		if fits {
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
	if err != nil {
		return nil, cannotListen(name, network, address, err)
	}
	return l, nil
}

// cannotListen returns why an address cannot be listened on, and what to do.
func cannotListen(name, network, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && network == "unix" && !isSocket(address):
		return fmt.Errorf("cannot listen on %s: a file or folder is in its place, which is not a socket; move it, or choose another path with --listen.%s", address, name)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program does; end it, or choose another address with --listen.%s", address, name)
	case errors.Is(err, syscall.EACCES) && network == "unix":
		return fmt.Errorf("cannot listen on %s: %w; the user of this process may not write to its folder", address, syscall.EACCES)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("cannot listen on %s: %w; ports below 1024 need the right to (systemd gives it with AmbientCapabilities=CAP_NET_BIND_SERVICE, or listens itself: see deploy/systemd)", address, syscall.EACCES)
	}
	return fmt.Errorf("cannot listen on %s: %w", address, err)
}

// abandoned reports whether a socket file is left over from a dead process. Connecting to a file
// that is not a socket is refused, too.
func abandoned(path string) bool {
	if !isSocket(path) {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// isSocket reports whether a path is a socket, or the name of an abstract one.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return strings.HasPrefix(path, "@") || err == nil && info.Mode()&fs.ModeSocket != 0
}

// sockFile is a Unix socket of a predecessor, which owns its file until this process serves.
type sockFile struct {
	listener *net.UnixListener
	used     bool // by this process
}

// claimSockets takes over the files of sockets: they are removed when this process ends, and those
// that it does not use are removed now.
func (h *Heir) claimSockets() {
	for _, f := range h.sockFiles {
		switch path := f.listener.Addr().String(); {
		case f.used:
			f.listener.SetUnlinkOnClose(true)
		case !strings.HasPrefix(path, "@"):
			_ = os.Remove(path) // it may be gone already
		}
	}
	h.sockFiles = nil
}

// listensOn reports whether a socket at addr is what listening on the address would give.
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

// sameIP reports whether a and b are the same address. 0.0.0.0, :: and no address all mean every
// address of the machine.
func sameIP(a, b netip.Addr) bool {
	a, b = a.Unmap(), b.Unmap()
	all := func(ip netip.Addr) bool { return !ip.IsValid() || ip.IsUnspecified() }
	return a == b || all(a) && all(b)
}
