package rules

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// networks is a set of IP networks, for lookups of addresses. They are kept as sorted ranges that
// do not overlap, so a lookup among a hundred thousand is one binary search. IPv4 and IPv6 are
// separate: ::/0 contains no IPv4 address.
type networks struct {
	v4 []span[uint32]
	v6 []span[uint128]
}

// span is the addresses from lo to hi, both included.
type span[T any] struct{ lo, hi T }

type uint128 struct{ hi, lo uint64 }

func (a uint128) compare(b uint128) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
}

// newNetworks returns the set of all addresses in prefixes. IPv4 networks that are written
// as IPv6 (::ffff:0:0/96) are IPv4 networks.
func newNetworks(prefixes []netip.Prefix) networks {
	var n networks
	for _, p := range prefixes {
		addr, bits := p.Addr(), p.Bits()
		if addr.Is4In6() && bits >= 96 {
			addr, bits = addr.Unmap(), bits-96
		}
		if addr.Is4() {
			host := ^uint32(0)
			if bits > 0 {
				host = 1<<(32-bits) - 1
			}
			lo := bits4(addr) &^ host
			n.v4 = append(n.v4, span[uint32]{lo, lo | host})
			continue
		}
		lo, host := bits6(addr), hostMask(bits)
		lo.hi, lo.lo = lo.hi&^host.hi, lo.lo&^host.lo
		n.v6 = append(n.v6, span[uint128]{lo, uint128{lo.hi | host.hi, lo.lo | host.lo}})
	}
	n.v4 = merge(n.v4, cmp.Compare[uint32])
	n.v6 = merge(n.v6, uint128.compare)
	return n
}

func bits4(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func bits6(a netip.Addr) uint128 {
	b := a.As16()
	return uint128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// hostMask returns an IPv6 address whose first bits are 0 and all others 1.
func hostMask(bits int) uint128 {
	if bits >= 64 {
		return uint128{0, ^uint64(0) >> (bits - 64)}
	}
	return uint128{^uint64(0) >> bits, ^uint64(0)}
}

// merge sorts spans and joins those that overlap.
func merge[T any](spans []span[T], compare func(a, b T) int) []span[T] {
	slices.SortFunc(spans, func(a, b span[T]) int { return compare(a.lo, b.lo) })
	var merged []span[T]
	for _, s := range spans {
		if n := len(merged); n > 0 && compare(s.lo, merged[n-1].hi) <= 0 {
			if compare(s.hi, merged[n-1].hi) > 0 {
				merged[n-1].hi = s.hi
			}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

func (n *networks) empty() bool { return len(n.v4) == 0 && len(n.v6) == 0 }

// contains reports whether addr is in one of the networks. addr must be unmapped.
func (n *networks) contains(addr netip.Addr) bool {
	switch {
	case addr.Is4():
		return inSpans(n.v4, bits4(addr), cmp.Compare[uint32])
	case addr.Is6():
		return inSpans(n.v6, bits6(addr), uint128.compare)
	}
	return false
}

// inSpans reports whether at is in one of spans, which are sorted and do not overlap.
func inSpans[T any](spans []span[T], at T, compare func(a, b T) int) bool {
	lo, hi := 0, len(spans)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if compare(spans[mid].lo, at) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo > 0 && compare(at, spans[lo-1].hi) <= 0
}
