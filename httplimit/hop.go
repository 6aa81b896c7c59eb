package httplimit

import (
	"net/netip"
	"strings"
)

// hop is a peer, or an entry of X-Forwarded-For.
type hop struct {
	addr netip.Addr // unmapped, without a zone; invalid: not an address
	text string     // the same as written, if that is how Addr.String writes it
}

// parseHop reads an address with or without a port: "192.0.2.1", "192.0.2.1:80",
// "2001:db8::1", "[2001:db8::1]:80", "[fe80::1%eth0]:80". Anything else is a hop
// without an address.
func parseHop(s string) hop {
	host := s
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isPort(s[end+1:]) {
			return hop{}
		}
		host = s[1:end]
		if !strings.Contains(host, ":") {
			return hop{}
		}
	} else if colon := strings.IndexByte(s, ':'); colon >= 0 && strings.IndexByte(s[colon+1:], ':') < 0 {
		if !isPort(s[colon:]) {
			return hop{}
		}
		host = s[:colon]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return hop{}
	}
	if addr.Is4() {
		return hop{addr: addr, text: host} // ParseAddr takes IPv4 in one spelling only
	}
	return hop{addr: addr.Unmap().WithZone("")}
}

// plainIPv4 cuts the address out of "192.0.2.1:80", which is what most peers look
// like, at half the cost of parseHop; it returns "" for anything else. The two
// have to agree, so they are compared by a fuzz test.
func plainIPv4(s string) string {
	i := 0
	for field := range 4 {
		start, n := i, 0
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			n = n*10 + int(s[i]-'0')
		}
		digits := i - start
		if digits == 0 || digits > 3 || digits > 1 && s[start] == '0' || n > 255 || i == len(s) {
			return ""
		}
		if field < 3 {
			if s[i] != '.' {
				return ""
			}
			i++
		}
	}
	if s[i] != ':' || !isPort(s[i:]) {
		return ""
	}
	return s[:i]
}

// isPort reports whether s is empty, or a colon and digits.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) > len(":65535") {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// key returns the address, or its network if the prefix is shorter than the address:
// "192.0.2.1", "2001:db8:1:2::/64".
func (h hop) key(bits4, bits6 int) string {
	bits := bits6
	switch {
	case !h.addr.IsValid():
		return "@"
	case h.addr.Is4():
		bits = bits4
	}
	if bits == h.addr.BitLen() {
		if h.text != "" {
			return h.text
		}
		return h.addr.String()
	}
	network, err := h.addr.Prefix(bits)
	if err != nil {
		return "@"
	}
	var room [48]byte
	return string(network.AppendTo(room[:0]))
}
