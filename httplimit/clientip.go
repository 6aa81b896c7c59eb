package httplimit

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ClientIP says which address is the client's. The zero value takes the peer
// of the connection and believes no header.
//
// Behind proxies, name them in Trusted. X-Forwarded-For is then read from the
// right, where the nearest proxy wrote, and only as long as whoever wrote the
// entry is trusted: what a client put there itself is never reached. An entry
// that is no address ends the walk, and the hop that passed it on is taken.
// X-Real-IP and Forwarded are not read: a proxy that sets neither forwards the
// client's own, and there is no telling.
type ClientIP struct {
	// Trusted are the networks of your own proxies.
	Trusted []netip.Prefix
	// TrustUnix: peers on a Unix socket are your own proxies, too.
	TrustUnix bool
	// TrustPeer reports whether the peer of a request is one of your own proxies although
	// it is in none of these networks, because it has proved that otherwise; nil means
	// that it is not.
	TrustPeer func(r *http.Request) bool
	// IPv4Bits and IPv6Bits are how much of an address makes a key; 0 means 32
	// and 64. A subscriber has a whole IPv6 /64 to send from, if not more.
	IPv4Bits, IPv6Bits int
}

// IP is shorthand for ClientIP{}.Key(): the peer of the connection is the
// client, IPv4 by address, IPv6 by /64.
func IP() KeyFunc { return ClientIP{}.Key() }

// IPBehind is shorthand for ClientIP{Trusted: proxies}.Key().
func IPBehind(proxies ...netip.Prefix) KeyFunc { return ClientIP{Trusted: proxies}.Key() }

// Key returns a KeyFunc that finds a key for every request. Requests that have
// no address, as those over a Unix socket, share the key "@".
func (c ClientIP) Key() KeyFunc {
	c.check()
	return func(r *http.Request) (string, bool) { return c.key(r), true }
}

// Addr returns the client's whole address, without a zone and IPv4 as IPv4. It
// is the zero Addr for a request over a Unix socket that no proxy forwarded.
func (c ClientIP) Addr(r *http.Request) netip.Addr { return c.find(r).addr }

// TrustsPeer reports whether r came from one of your own proxies, so that what it
// says of the client is believed.
func (c ClientIP) TrustsPeer(r *http.Request) bool { return c.trustsPeer(r, parseHop(r.RemoteAddr)) }

func (c *ClientIP) check() {
	if c.IPv4Bits < 0 || c.IPv4Bits > 32 || c.IPv6Bits < 0 || c.IPv6Bits > 128 {
		panic("httplimit: ClientIP: IPv4Bits must be within 0 and 32, IPv6Bits within 0 and 128")
	}
	for _, p := range c.Trusted {
		if !p.IsValid() {
			panic("httplimit: ClientIP: a trusted prefix is invalid")
		}
	}
}

func (c *ClientIP) key(r *http.Request) string {
	if c.trustsNobody() && c.IPv4Bits&31 == 0 { // 0 means 32
		if ip := plainIPv4(r.RemoteAddr); ip != "" {
			return ip
		}
	}
	bits4, bits6 := c.IPv4Bits, c.IPv6Bits
	if bits4 == 0 {
		bits4 = 32
	}
	if bits6 == 0 {
		bits6 = 64
	}
	return c.find(r).key(bits4, bits6)
}

// find returns the client: it walks from the peer through X-Forwarded-For as long
// as the hop that wrote the next entry is trusted.
func (c *ClientIP) find(r *http.Request) hop {
	at := parseHop(r.RemoteAddr)
	if c.trustsNobody() {
		return at
	}
	trusted := c.trustsPeer(r, at)
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		rest, more := lines[i], true
		for more {
			if !trusted {
				return at
			}
			comma := strings.LastIndexByte(rest, ',')
			next := parseHop(strings.Trim(rest[comma+1:], " \t"))
			if !next.addr.IsValid() {
				return at
			}
			at, trusted = next, c.trusts(next.addr)
			rest, more = rest[:max(comma, 0)], comma >= 0
		}
	}
	return at
}

func (c *ClientIP) trustsNobody() bool {
	return len(c.Trusted) == 0 && !c.TrustUnix && c.TrustPeer == nil
}

func (c *ClientIP) trustsPeer(r *http.Request, peer hop) bool {
	if c.TrustPeer != nil && c.TrustPeer(r) {
		return true
	}
	if peer.addr.IsValid() {
		return c.trusts(peer.addr)
	}
	// Not by the look of RemoteAddr: other middleware may have written there.
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return c.TrustUnix && local != nil && local.Network() == "unix"
}

func (c *ClientIP) trusts(a netip.Addr) bool {
	for _, p := range c.Trusted {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Contains(a) {
			return true
		}
	}
	return false
}
