package admin

import (
	"maps"
	"net/netip"
	"strings"

	"tidegate.dev/tidegate/internal/lang/describe"
)

// oneSpelling returns a copy of as with addresses and networks in canonical form.
func oneSpelling(as map[string]string) map[string]string {
	as = maps.Clone(as)
	ip, ok := as["ip"]
	if !ok {
		return as
	}
	if a, err := netip.ParseAddr(ip); err == nil {
		as["ip"] = a.Unmap().String()
	} else if p, err := netip.ParsePrefix(ip); err == nil {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		as["ip"] = p.Masked().String()
	}
	return as
}

// sameWho reports whether a and b mean the same callers: a ban of Ann is one of ann if the rules
// ignore case.
func (s *server) sameWho(a, b map[string]string) bool {
	if maps.Equal(a, b) {
		return true
	}
	alike := func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }
	return s.Rules != nil && maps.EqualFunc(a, b, alike) && maps.Equal(s.spelled(a), s.spelled(b))
}

// spelled returns as with the values that requests are counted by.
func (s *server) spelled(as map[string]string) map[string]string {
	as = maps.Clone(as)
	described := describe.Request{URL: "/", As: maps.Clone(as)}
	delete(described.As, "ip") // it may be a network, and no request comes from one
	r, err := described.Request()
	if err != nil {
		return as
	}
	for _, id := range s.Rules.Live().Set().Explain(r).Identities {
		if _, named := described.As[id.Name]; named && !id.Missing {
			as[id.Name] = id.Value
		}
	}
	return as
}
