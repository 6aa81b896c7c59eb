package rulefile

import (
	"net/netip"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// parseValue reads what a value is compared with: a network, an address, a glob
// or a literal.
func parseValue(w Word) (Test, mistake) {
	t := Test{Text: w.Text, Pos: w.Pos}
	if strings.Contains(w.Text, "*") {
		t.Kind = TestGlob
		return t, checkGlob(w.Text)
	}
	if addr, err := netip.ParseAddr(w.Text); err == nil {
		if addr.Zone() != "" {
			return t, mistake{diag.Quote(w.Text) + " has a zone, which no client's address has", "write " + diag.Quote(addr.WithZone("").String())}
		}
		addr = addr.Unmap()
		t.Kind, t.Prefix = TestPrefix, netip.PrefixFrom(addr, addr.BitLen())
		return t, mistake{}
	}
	host, _, slash := strings.Cut(w.Text, "/")
	addr, err := netip.ParseAddr(host)
	if !slash || err != nil {
		return t, mistake{}
	}
	t.Kind = TestPrefix
	t.Prefix, err = netip.ParsePrefix(w.Text)
	switch {
	case err != nil && addr.Is4():
		return t, mistake{diag.Quote(w.Text) + " is not a valid network: the prefix of IPv4 is from /0 to /32", "write " + diag.Quote(host+"/24")}
	case err != nil:
		return t, mistake{diag.Quote(w.Text) + " is not a valid network: the prefix of IPv6 is from /0 to /128", "write " + diag.Quote(host+"/64")}
	case addr.Is4In6():
		return t, mistake{diag.Quote(w.Text) + " is an IPv4 network written as IPv6, and clients are compared as IPv4", "write " + diag.Quote(addr.Unmap().String()+"/24") + " or what you mean"}
	case t.Prefix != t.Prefix.Masked():
		return t, mistake{diag.Quote(w.Text) + " has bits set beyond its prefix", "write " + diag.Quote(t.Prefix.Masked().String()) + " for the network, or " + diag.Quote(host) + " for the one address"}
	}
	return t, mistake{}
}

// checkGlob returns what is wrong with a glob: it accepts every value, or reads like another language
// of patterns.
func checkGlob(text string) mistake {
	plain := strings.Trim(text, "^$")
	plain = strings.ReplaceAll(plain, ".*", "*")
	for strings.Contains(plain, "**") {
		plain = strings.ReplaceAll(plain, "**", "*")
	}
	switch {
	case plain == "*" || plain == "":
		return mistake{diag.Quote(text) + " lets everything through that there is", "write `present`"}
	case strings.HasPrefix(text, "^") || strings.HasSuffix(text, "$") || strings.HasPrefix(text, ".*"):
		return mistake{diag.Quote(text) + " reads like a regular expression, and only `*` is special here", "write " + diag.Quote("\""+plain+"\"")}
	case strings.Contains(text, "**"):
		return mistake{diag.Quote(text) + " has `**`, which means no more than `*`", "write " + diag.Quote("\""+plain+"\"")}
	}
	return mistake{}
}
