package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Address is where to listen, in the words of [net.Listen].
type Address struct {
	Network string // tcp or unix
	Address string // 127.0.0.1:8080, :8080 for every address of the machine, or the path of a socket
}

const unixPrefix = "unix:"

// Open reports whether there is anything to listen on; the zero value is off.
func (a Address) Open() bool { return a.Network != "" }

// String returns the address as it is written: 127.0.0.1:8080, unix:/run/tidegate.sock, or off.
func (a Address) String() string {
	if !a.Open() {
		return Off
	}
	if a.Network == "unix" {
		return unixPrefix + a.Address
	}
	return a.Address
}

// Local reports whether only this machine can reach it.
func (a Address) Local() bool {
	return a.Network == "unix" || loopback(a.host())
}

// host returns the host; "" for every address of the machine.
func (a Address) host() string {
	host, _, _ := net.SplitHostPort(a.Address)
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return host
	case ip.Unmap().IsUnspecified():
		return ""
	}
	return ip.Unmap().String() // ::ffff:127.0.0.1 is the same place
}

func (a Address) port() string {
	_, port, _ := net.SplitHostPort(a.Address)
	return port
}

// meets reports whether it is impossible to listen on both a and b.
func (a Address) meets(b Address) bool {
	if !a.Open() || !b.Open() {
		return false
	}
	if a.Network != b.Network || a.Network == "unix" {
		return a == b
	}
	if a.port() != b.port() || a.port() == "0" {
		return false
	}
	return a.host() == "" || b.host() == "" || sameHost(a.host(), b.host())
}

// reachedAt reports whether a connection to host and port arrives at a.
func (a Address) reachedAt(host, port string) bool {
	if a.Network != "tcp" || a.port() != port {
		return false
	}
	own := a.host()
	if to := (Address{Address: net.JoinHostPort(host, port)}).host(); to != "" {
		return sameHost(own, to) || own == "" && loopback(to)
	}
	return own == "" || loopback(own) // connecting to an empty address connects to this machine
}

func sameHost(a, b string) bool {
	return a == b || (a == "localhost" || b == "localhost") && loopback(a) && loopback(b)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// address returns the codec of HOST:PORT, or of a socket; hints suggest the port usual.
func address(usual string) codec[Address] {
	return codec[Address]{
		read: func(w rawValue) (Address, mistake) {
			if path, ok := strings.CutPrefix(w.text, unixPrefix); ok {
				return readSocket(w, strings.TrimPrefix(path, "//"))
			}
			host, port, err := net.SplitHostPort(w.text)
			if err != nil || strings.Contains(w.text, "://") {
				return Address{}, notHostPort(w.text, usual)
			}
			return readHostPort(w.text, host, port)
		},
		write: Address.String,
	}
}

// addressOrOff is address, or the word off.
func addressOrOff(usual string) codec[Address] {
	c := address(usual)
	read := c.read
	c.read = func(w rawValue) (Address, mistake) {
		if w.text == Off {
			return Address{}, mistake{}
		}
		return read(w)
	}
	return c
}

func readHostPort(text, host, port string) (Address, mistake) {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return Address{}, advised("has no port from 0 to 65535: "+quote(text), "")
	}
	if host == "*" {
		return Address{}, wrong("cannot be "+quote(text), ":"+port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	} else if host != "" && host != "localhost" {
		return Address{}, advised("has a name, which may mean several addresses: "+quote(text), anyHost(port))
	}
	return Address{"tcp", net.JoinHostPort(host, port)}, mistake{}
}

// anyHost returns the hint for an address whose host is missing or cannot be used.
func anyHost(port string) string {
	return "write " + quote("127.0.0.1:"+port) + " for this machine alone, or " + quote(":"+port) + " for all that reach it"
}

// readSocket reads path, which follows "unix:", as the path of a socket.
func readSocket(w rawValue, path string) (Address, mistake) {
	const longest = 107 // the kernel's limit, without the terminating zero
	if path == "" {
		return Address{}, wrong("names no socket: "+quote(w.text), "unix:/run/tidegate.sock")
	}
	if !strings.HasPrefix(path, "@") { // abstract sockets of Linux are in no folder
		path = within(w.dir, path)
	}
	if len(path) > longest {
		return Address{}, advised("is a longer path than a socket can have: "+quote(w.text), "take one of at most 107 bytes, as in `unix:/run/tidegate.sock`")
	}
	return Address{"unix", path}, mistake{}
}

// notHostPort returns the mistake of a text that is not a host and a port. It knows what people write
// instead.
func notHostPort(text, usual string) mistake {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		hostPort, _, _ := strings.Cut(rest[strings.LastIndex(rest, "@")+1:], "/")
		return wrong("is a URL, and an address is host and port alone: "+quote(text), hostPort)
	}
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		return advised("has no host: "+quote(text), anyHost(text))
	}
	// The last part of an IPv6 address without brackets may be meant as the port.
	if i := strings.LastIndex(text, ":"); i > 0 {
		ip, err := netip.ParseAddr(text[:i])
		if port, no := strconv.ParseUint(text[i+1:], 10, 16); err == nil && ip.Is6() && no == nil && port >= 80 {
			return wrong("has an IPv6 address without brackets: "+quote(text), net.JoinHostPort(ip.String(), text[i+1:]))
		}
	}
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return wrong("has no port: "+quote(text), net.JoinHostPort(ip.String(), usual))
	}
	if filepath.IsAbs(text) {
		return wrong("is a path, and has no unix: before it: "+quote(text), unixPrefix+text)
	}
	return advised("is not a valid address: "+quote(text), "")
}
