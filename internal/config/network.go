package config

import (
	"net/netip"
	"strings"
)

// network is a CIDR, or an address alone.
var network = codec[netip.Prefix]{
	read: func(w rawValue) (netip.Prefix, mistake) {
		if ip, err := netip.ParseAddr(w.text); err == nil && ip.Zone() == "" {
			ip = ip.Unmap()
			return netip.PrefixFrom(ip, ip.BitLen()), mistake{}
		}
		p, err := netip.ParsePrefix(w.text)
		switch {
		case err != nil:
			return p, notNetwork(w.text)
		case p.Addr().Is4In6():
			return p, wrong("is an IPv4 network in IPv6: "+quote(w.text), unmapped(p))
		case p != p.Masked():
			return p, wrong("has bits beyond its length: "+quote(w.text), p.Masked().String())
		}
		return p, mistake{}
	},
	write: netip.Prefix.String,
}

// unmapped returns the IPv4 network of one that is written in IPv6; "" if it is more than IPv4.
func unmapped(p netip.Prefix) string {
	if p.Bits() < 96 {
		return ""
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked().String()
}

// notNetwork returns the mistake of a text that is not a network, with advice for common mistakes.
func notNetwork(text string) mistake {
	message := "is not a valid network: " + quote(text)
	if _, rest, ok := strings.Cut(text, "://"); ok {
		return advised(message, "write the address of the proxy without "+quote(strings.TrimSuffix(text, rest)))
	}
	addr, bits, slash := strings.Cut(text, "/")
	switch ip, err := netip.ParseAddr(addr); {
	case err == nil && slash && ip.Is4():
		return advised(message, "after the slash is how many bits are fixed, from 0 to 32, and not "+quote(bits))
	case err == nil && slash:
		return advised(message, "after the slash is how many bits are fixed, from 0 to 128, and not "+quote(bits))
	case strings.HasSuffix(text, ".*"):
		return advised(message, "write how many bits are fixed in place of stars, as in `10.0.0.0/8`")
	}
	return advised(message, "write an address or a network: `192.0.2.7`, `10.0.0.0/8`, `\"2001:db8::/32\"`; names are not looked up")
}
