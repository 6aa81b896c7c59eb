package httplimit

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func from(remote string, forwarded ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = remote
	for _, line := range forwarded {
		r.Header.Add("X-Forwarded-For", line)
	}
	return r
}

func TestTrap20ForwardedForIsBelievedFromTrustedPeersOnly(t *testing.T) {
	proxies := ClientIP{Trusted: prefixes("10.0.0.0/8", "::ffff:192.168.0.0/112", "2001:db8:f::/48", "fe80::/10")}
	f := func(c ClientIP, want, remote string, forwarded ...string) {
		t.Helper()
		r := from(remote, forwarded...)
		r.Header.Set("X-Real-IP", "203.0.113.99")
		r.Header.Set("Forwarded", "for=203.0.113.98")
		if key, ok := c.Key()(r); key != want || !ok {
			t.Errorf("peer %s, forwarded %q: key %q, %v, want %q", remote, forwarded, key, ok, want)
		}
	}
	// Nobody is trusted unless said so.
	f(ClientIP{}, "10.0.0.1", "10.0.0.1:99", "203.0.113.7")
	f(ClientIP{}, "127.0.0.1", "127.0.0.1:99", "203.0.113.7")
	// An untrusted peer says what it likes.
	f(proxies, "203.0.113.1", "203.0.113.1:99", "198.51.100.1")
	// One proxy, two proxies, and what the client invented to their left.
	f(proxies, "203.0.113.7", "10.0.0.1:99", "203.0.113.7")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "198.51.100.1, 203.0.113.7")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "10.9.9.9, 203.0.113.7, 10.0.0.2")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "10.9.9.9,203.0.113.7,\t10.0.0.2")
	// Several lines are one list.
	f(proxies, "203.0.113.7", "10.0.0.1:99", "198.51.100.1", "203.0.113.7", "10.0.0.2")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "198.51.100.1, 203.0.113.7", "10.0.0.2, 10.0.0.3")
	// All of them are ours: the farthest is the client.
	f(proxies, "10.0.0.3", "10.0.0.1:99", "10.0.0.3, 10.0.0.2")
	f(proxies, "10.0.0.1", "10.0.0.1:99")
	// Garbage ends the walk at the one who passed it on.
	f(proxies, "10.0.0.1", "10.0.0.1:99", "203.0.113.7, unknown")
	f(proxies, "10.0.0.2", "10.0.0.1:99", "203.0.113.7, , 10.0.0.2")
	f(proxies, "10.0.0.2", "10.0.0.1:99", "203.0.113.7", "", "10.0.0.2")
	f(proxies, "10.0.0.1", "10.0.0.1:99", "010.0.0.7")
	f(proxies, "10.0.0.1", "10.0.0.1:99", "203.0.113.7:http")
	f(proxies, "10.0.0.1", "10.0.0.1:99", "203.0.113.7:123456")
	f(proxies, "10.0.0.1", "10.0.0.1:99", "[203.0.113.7]:80")
	f(proxies, "10.0.0.1", "10.0.0.1:99", "[2001:db8::1")
	f(proxies, "10.0.0.1", "10.0.0.1:99", `"203.0.113.7"`)
	f(proxies, "10.0.0.1", "10.0.0.1:99", strings.Repeat(",", 1000))
	// Ports, brackets, zones, mapped addresses.
	f(proxies, "203.0.113.7", "10.0.0.1:99", "203.0.113.7:5678")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "::ffff:203.0.113.7")
	f(proxies, "203.0.113.7", "10.0.0.1:99", "[::ffff:203.0.113.7]:5678")
	f(proxies, "203.0.113.7", "[::ffff:10.0.0.1]:99", "203.0.113.7")
	f(proxies, "203.0.113.7", "192.168.0.1:99", "203.0.113.7")
	f(proxies, "203.0.113.7", "[fe80::1%eth0]:99", "203.0.113.7")
	f(proxies, "2001:db8:1:2::/64", "[2001:db8:f::1]:99", "2001:db8:1:2:3:4:5:6")
	f(proxies, "2001:db8:1:2::/64", "[2001:db8:f::1]:99", "[2001:db8:1:2:3:4:5:6]:80")
	f(proxies, "203.0.113.7", "203.0.113.7") // other middleware may have cut the port off
}

func TestTrap20IPv6IsCountedByPrefix(t *testing.T) {
	f := func(c ClientIP, remote, want string) {
		t.Helper()
		if got, _ := c.Key()(from(remote)); got != want {
			t.Errorf("%+v: key of %s is %q, want %q", c, remote, got, want)
		}
	}
	f(ClientIP{}, "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::/64")
	f(ClientIP{}, "[2001:db8:1:2:ffff::]:1", "2001:db8:1:2::/64")
	f(ClientIP{}, "[2001:db8:1:3::]:1", "2001:db8:1:3::/64")
	f(ClientIP{}, "[fe80::1%eth0]:1", "fe80::/64")
	f(ClientIP{}, "[::ffff:192.0.2.1]:1", "192.0.2.1")
	f(ClientIP{IPv6Bits: 48}, "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1::/48")
	f(ClientIP{IPv6Bits: 128}, "[2001:db8::1]:1", "2001:db8::1")
	f(ClientIP{IPv4Bits: 24}, "192.0.2.1:1", "192.0.2.0/24")
	f(ClientIP{IPv4Bits: 24}, "[::ffff:192.0.2.1]:1", "192.0.2.0/24")
}

func TestUnixSocketPeers(t *testing.T) {
	over := func(network, remote string, forwarded ...string) *http.Request {
		local := net.Addr(&net.UnixAddr{Name: "/run/app.sock", Net: "unix"})
		if network == "tcp" {
			local = &net.TCPAddr{}
		}
		r := from(remote, forwarded...)
		return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	}
	f := func(c ClientIP, r *http.Request, want string) {
		t.Helper()
		if got, ok := c.Key()(r); got != want || !ok {
			t.Errorf("%+v: key of %s is %q, %v, want %q", c, r.RemoteAddr, got, ok, want)
		}
	}
	f(ClientIP{}, over("unix", "@", "203.0.113.7"), "@")
	f(ClientIP{Trusted: prefixes("0.0.0.0/0", "::/0")}, over("unix", "@", "203.0.113.7"), "@")
	f(ClientIP{TrustUnix: true}, over("unix", "@", "203.0.113.7"), "203.0.113.7")
	f(ClientIP{TrustUnix: true}, over("unix", "", "198.51.100.1, 203.0.113.7"), "203.0.113.7")
	f(ClientIP{TrustUnix: true}, over("unix", "@"), "@")
	f(ClientIP{TrustUnix: true}, over("unix", "@", "unknown"), "@")
	// RemoteAddr was overwritten by something; the connection is not a socket file.
	f(ClientIP{TrustUnix: true}, over("tcp", "garbage", "203.0.113.7"), "@")
	f(ClientIP{TrustUnix: true}, from("", "203.0.113.7"), "@")
}

func TestAddrIsTheWholeAddress(t *testing.T) {
	c := ClientIP{Trusted: prefixes("10.0.0.0/8")}
	if got := c.Addr(from("10.0.0.1:9", "2001:db8::7")); got != netip.MustParseAddr("2001:db8::7") {
		t.Errorf("got %s", got)
	}
	if got := c.Addr(from("@")); got.IsValid() {
		t.Errorf("got %s for a peer without address", got)
	}
}

func TestClientIPRefusesNonsense(t *testing.T) {
	f := func(c ClientIP) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%+v was taken", c)
			}
		}()
		c.Key()
	}
	f(ClientIP{IPv4Bits: 33})
	f(ClientIP{IPv6Bits: 129})
	f(ClientIP{IPv6Bits: -1})
	f(ClientIP{Trusted: []netip.Prefix{{}}})
}

// FuzzForwardedFor holds the walk against the plain statement of the rule: of
// the list of hops, peer last, the client is the first from the right that is
// not trusted, or the last address before something that is none.
func FuzzForwardedFor(f *testing.F) {
	f.Add("10.0.0.1:9", "203.0.113.7, 10.0.0.2", "10.0.0.3")
	f.Add("10.0.0.1:9", "203.0.113.7, unknown", "")
	f.Add("[::ffff:10.0.0.1]:9", "::ffff:10.0.0.2%eth0,,", "[fe80::1%x]:80")
	f.Add("@", "203.0.113.7", "10.1.1.1")
	f.Add("203.0.113.9:1", "10.0.0.1", "10.0.0.2")
	c := ClientIP{Trusted: prefixes("10.0.0.0/8", "fd00::/8")}
	f.Fuzz(func(t *testing.T, remote, line1, line2 string) {
		r := from(remote, line1, line2)
		got := c.Addr(r)
		key, ok := c.Key()(r)
		if !ok || key == "" || strings.ContainsAny(key, " ,%") {
			t.Errorf("key %q, %v", key, ok)
		}

		hops := append(strings.Split(line1, ","), strings.Split(line2, ",")...)
		want := parseHop(remote).addr
		for i := len(hops) - 1; i >= 0 && want.IsValid() && c.trusts(want); i-- {
			next := parseHop(strings.Trim(hops[i], " \t")).addr
			if !next.IsValid() {
				break
			}
			want = next
		}
		if got != want {
			t.Errorf("peer %q, forwarded %q %q: client %s, want %s", remote, line1, line2, got, want)
		}
		if got.IsValid() && (got.Zone() != "" || got.Is4In6()) {
			t.Errorf("client %s is not in its plain form", got)
		}
	})
}

// FuzzHop: an address is in its plain form, and its text is how it is written.
func FuzzHop(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "192.0.2.1:80", "[2001:db8::1%eth0]:80", "2001:db8::1", "[::1]", "::ffff:1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h := parseHop(s)
		if h.text != "" && h.text != h.addr.String() {
			t.Errorf("%q: text %q is not the spelling of %s", s, h.text, h.addr)
		}
		if h.addr.Zone() != "" || h.addr.Is4In6() {
			t.Errorf("%q: %s is not in its plain form", s, h.addr)
		}
	})
}

// FuzzPlainIPv4: the short way to a key leads where the long one does, and is
// taken for every IPv4 address with a port.
func FuzzPlainIPv4(f *testing.F) {
	for _, s := range []string{
		"192.0.2.1:80", "192.0.2.1", "192.0.2.1:", "0.0.0.0:0", "255.255.255.255:65535", "256.0.2.1:80",
		"192.0.2.01:80", "192.0.2:80", "192.0.2.1.1:80", "192..2.1:80", ".0.2.1:80", "192.0.2.1:http",
		"192.0.2.1:123456", "192.0.2.1:80:80", "192.0.2.1%eth0:80", " 192.0.2.1:80", "192.0.2.1:80 ",
		"[192.0.2.1]:80", "[::ffff:192.0.2.1]:80", "18446744073709551808.0.2.1:80", "192.0.2.1.:80", ":80", "@", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		peer := parseHop(s)
		want := ""
		if strings.Contains(s, ":") {
			want = peer.text
		}
		if got := plainIPv4(s); got != want {
			t.Errorf("%q: the short way finds %q, the long way %q", s, got, want)
		}
		for _, bits4 := range []int{0, 1, 24, 32} {
			c, long := ClientIP{IPv4Bits: bits4}, bits4
			if long == 0 {
				long = 32
			}
			if got, _ := c.Key()(&http.Request{RemoteAddr: s}); got != peer.key(long, 64) {
				t.Errorf("%q by /%d: key %q, the long way finds %q", s, bits4, got, peer.key(long, 64))
			}
		}
	})
}
