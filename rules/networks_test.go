package rules

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func TestNetworks(t *testing.T) {
	f := func(addr string, want bool, prefixes ...string) {
		t.Helper()
		var all []netip.Prefix
		for _, p := range prefixes {
			all = append(all, netip.MustParsePrefix(p))
		}
		n := newNetworks(all)
		if got := n.contains(netip.MustParseAddr(addr).Unmap()); got != want {
			t.Errorf("%s in %v: %v, want %v", addr, prefixes, got, want)
		}
	}
	f("203.0.113.7", true, "203.0.113.0/24")
	f("203.0.114.0", false, "203.0.113.0/24")
	f("203.0.113.7", true, "10.0.0.0/8", "203.0.113.7/32")
	f("::ffff:203.0.113.7", true, "203.0.113.0/24")
	f("203.0.113.7", true, "::ffff:203.0.113.0/120")
	f("255.255.255.255", true, "0.0.0.0/0")
	f("203.0.113.7", false, "::/0")
	f("2001:db8::1", true, "::/0")
	f("2001:db8::1", true, "2001:db8::/32")
	f("2001:db9::", false, "2001:db8::/32")
	f("2001:db8::1", true, "2001:db8::1/128")
	f("2001:db8::2", false, "2001:db8::1/128")
	f("2001:db8:0:0:ffff::", true, "2001:db8::/64")
	f("2001:db8:0:1::", false, "2001:db8::/64")
	f("10.9.9.9", true, "10.0.0.0/8", "10.1.0.0/16") // the wide one ends later
	f("10.0.0.1", false)
}

// The ranges say what asking each network says.
func TestNetworksAgreeWithPrefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	addr := func() netip.Addr {
		var b [16]byte
		if random.IntN(2) == 0 {
			binary.BigEndian.PutUint32(b[:], random.Uint32()&0xff0f0ff3)
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		binary.BigEndian.PutUint64(b[:], random.Uint64()&0x20010000000f00ff)
		binary.BigEndian.PutUint64(b[8:], random.Uint64()&0xff00000000000003)
		return netip.AddrFrom16(b)
	}
	for range 200 {
		var prefixes []netip.Prefix
		for range random.IntN(40) {
			a := addr()
			prefixes = append(prefixes, netip.PrefixFrom(a, random.IntN(a.BitLen()+1)))
		}
		n := newNetworks(prefixes)
		for range 200 {
			a, want := addr(), false
			for _, p := range prefixes {
				want = want || p.Contains(a)
			}
			if got := n.contains(a); got != want {
				t.Fatalf("%s in %v: %v, want %v", a, prefixes, got, want)
			}
		}
	}
}

// A ban list is asked for every request.
func BenchmarkNetworks(b *testing.B) {
	var prefixes []netip.Prefix
	for i := range 100_000 {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(i)*40_000)
		prefixes = append(prefixes, netip.PrefixFrom(netip.AddrFrom4(a), 28))
	}
	n := newNetworks(prefixes)
	addr := netip.MustParseAddr("203.0.113.7")
	for b.Loop() {
		n.contains(addr)
	}
}
