package route

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// maxHost is how long a name in the DNS can be.
const maxHost = 253

// hostKey appends the one spelling under which a host is kept: lower case,
// without port, brackets, zone and trailing dot, an IPv6 address as RFC 5952 has
// it. What can be no host gives nothing.
func hostKey(room []byte, host string) []byte {
	host = withoutPort(host)
	if strings.Contains(host, ":") {
		host, _, _ = strings.Cut(host, "%")
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return room
		}
		return addr.AppendTo(room)
	}
	host = strings.TrimRight(host, ".")
	if len(host) > maxHost {
		return room
	}
	for _, c := range []byte(host) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		room = append(room, c)
	}
	return room
}

// withoutPort also takes the brackets off. Several colons and no brackets are an
// IPv6 address.
func withoutPort(host string) string {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, _, _ = strings.Cut(inside, "]")
		return inside
	}
	name, port, _ := strings.Cut(host, ":")
	if strings.Contains(port, ":") {
		return host
	}
	return name
}

// patternHost returns the spelling of a host in a [Pattern].
func patternHost(host string) string {
	name := string(hostKey(nil, host))
	if strings.HasPrefix(host, "[") {
		return "[" + name + "]"
	}
	return name
}

func checkHost(host string) error {
	if host == "" {
		return nil
	}
	if strings.HasPrefix(host, "[") {
		return checkIPv6(host)
	}
	switch name, port, ported := strings.Cut(host, ":"); {
	case strings.Contains(port, ":"):
		return errors.New("an IPv6 address is written in brackets, like `[2001:db8::1]/`")
	case ported:
		return fmt.Errorf("the port of a host is never compared; write `%s` without `:%s`", name, port)
	case strings.Contains(host, "*"):
		return errors.New("a host has no wildcards; write a pattern for each host, or none for every host")
	case strings.ContainsAny(host, "{}"):
		return errors.New("a host has no wildcards; if this is the path, write a slash before it")
	}
	for _, c := range host {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		case c >= 0x80:
			return fmt.Errorf("the host `%s` is never sent like this; write it in ASCII, as browsers do (`xn--…`)", host)
		default:
			return fmt.Errorf("%q is not allowed in a host; hosts are like `api.example.com`", c)
		}
	}
	if host[0] == '.' || strings.Contains(host, "..") || len(hostKey(nil, host)) == 0 {
		return fmt.Errorf("`%s` is not a host; hosts are like `api.example.com`", host)
	}
	return nil
}

func checkIPv6(host string) error {
	inside, after, closed := strings.Cut(host[1:], "]")
	if addr, err := netip.ParseAddr(inside); !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
		return fmt.Errorf("`%s` is not an IPv6 address in brackets", host)
	}
	if after != "" {
		return fmt.Errorf("the port of a host is never compared; leave out `%s`", after)
	}
	return nil
}
