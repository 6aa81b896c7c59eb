package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// guard identifies the operator of a request.
type guard struct {
	token        func() string    // nil means that there is no token that permits everything
	operators    func() Operators // nil means that no operator has a token of their own
	certificates map[string]Role  // by common name; nil means that certificates do not count
	sso          *SSO             // nil means that no proxy signs operators in
	sessions     *sessions
}

// SSO describes proxies that name the operator who has signed in.
type SSO struct {
	Header string
	From   []netip.Prefix  // the proxies that set it
	Roles  map[string]Role // by name, "*" for all others
}

func newGuard(o *Options) guard {
	return guard{o.Token, o.Operators, o.Certificates, o.SSO, new(sessions)}
}

// open reports whether operators cannot be identified at all.
func (g *guard) open() bool {
	return g.token == nil && g.operators == nil && g.certificates == nil && g.sso == nil
}

// who returns the operator of a request; the problem says why it is not permitted.
func (g *guard) who(r *http.Request) (Operator, *Problem) {
	if g.open() {
		return Operator{"local", Rule, "local"}, local(r)
	}
	if p := foreign(r, g.fromProxy(r)); p != nil {
		return Operator{}, p
	}
	switch given := r.Header.Values("Authorization"); {
	case len(given) > 1:
		return Operator{}, problemf(http.StatusUnauthorized, "There are several Authorization headers; send one token.")
	case len(given) == 1:
		return g.byToken(given[0])
	}
	if o, ok := g.bySession(r); ok {
		// Browsers send the cookie by themselves, and for writes also the origin of the page.
		if !isRead(r) && len(r.Header.Values("Origin")) == 0 {
			return Operator{}, problemf(http.StatusForbidden, "A write by a session has to say which page it is from, by Origin, and this does not; programs present a token.")
		}
		return o, nil
	}
	if o, ok := g.byCertificate(r); ok {
		return o, nil
	}
	if o, ok := g.bySSO(r); ok {
		return o, nil
	}
	return Operator{}, problemf(http.StatusUnauthorized, "This needs the token of an operator, as Authorization: Bearer TOKEN%s.", g.otherCredentials())
}

func (g *guard) otherCredentials() string {
	text := ""
	if g.certificates != nil {
		text = ", or a client certificate"
	}
	if g.sso != nil {
		text += ", or to be signed in at the proxy"
	}
	return text
}

func (g *guard) byToken(header string) (Operator, *Problem) {
	scheme, given, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Operator{}, problemf(http.StatusUnauthorized, "This needs the token of an operator, as Authorization: Bearer TOKEN.")
	}
	o, _, p := g.findToken(given)
	return o, p
}

// findToken returns the operator with that token, and the hash under which the token is known.
func (g *guard) findToken(given string) (Operator, [sha256.Size]byte, *Problem) {
	given = strings.TrimSpace(given)
	for _, text := range []string{given, given + "\n"} { // the hash may have been made of a file that ends with a newline
		hash := sha256.Sum256([]byte(text))
		if o, ok := g.byHash(hash); ok && given != "" {
			return o, hash, nil
		}
	}
	return Operator{}, [sha256.Size]byte{}, problemf(http.StatusUnauthorized, "This is not the token of an operator.")
}

// byHash returns the operator whose token has that hash.
func (g *guard) byHash(hash [sha256.Size]byte) (Operator, bool) {
	if g.token != nil {
		if all := sha256.Sum256([]byte(g.token())); subtle.ConstantTimeCompare(hash[:], all[:]) == 1 {
			return Operator{"token", Rule, "token"}, true
		}
	}
	if g.operators == nil {
		return Operator{}, false
	}
	o, ok := g.operators()[hash]
	return o, ok
}

// viaSession is the Via of an operator who has signed in with a session.
const viaSession = "session"

// bySession identifies an operator by the session cookie, if the operator still exists.
func (g *guard) bySession(r *http.Request) (Operator, bool) {
	one, ok := g.sessions.find(sessionName(r), time.Now())
	if !ok {
		return Operator{}, false
	}
	o, ok := g.byHash(one.token)
	o.Via = viaSession
	return o, ok
}

// byCertificate identifies an operator by the verified certificate of the connection.
func (g *guard) byCertificate(r *http.Request) (Operator, bool) {
	if g.certificates == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return Operator{}, false
	}
	name := r.TLS.VerifiedChains[0][0].Subject.CommonName
	if !validName(name) {
		return Operator{}, false
	}
	return Operator{name, roleFor(g.certificates, name), "certificate"}, true
}

func (g *guard) bySSO(r *http.Request) (Operator, bool) {
	if !g.fromProxy(r) {
		return Operator{}, false
	}
	names := r.Header.Values(g.sso.Header)
	if len(names) != 1 || !validName(names[0]) { // with two values, the proxy has not replaced the client's
		return Operator{}, false
	}
	return Operator{names[0], roleFor(g.sso.Roles, names[0]), "sso"}, true
}

// fromProxy reports whether the peer is a proxy that names the operator.
func (g *guard) fromProxy(r *http.Request) bool {
	if g.sso == nil {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(g.sso.From, func(p netip.Prefix) bool { return p.Contains(peer.Addr().Unmap()) })
}

// roleFor returns the role of a name, else that of "*", else Nobody.
func roleFor(roles map[string]Role, name string) Role {
	if role, ok := roles[name]; ok && name != "*" {
		return role
	}
	return roles["*"]
}

// local rejects requests from other machines, and those that a browser or a proxy on this machine
// sends for somebody else: another site may resolve its own name to 127.0.0.1, and proxies connect
// from their own address.
func local(r *http.Request) *Problem {
	const advice = "; set admin.tokens and present the token of an operator."
	if r.RemoteAddr != "" && r.RemoteAddr != "@" { // otherwise a Unix socket, which has file permissions
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !peer.Addr().Unmap().IsLoopback() {
			return problemf(http.StatusForbidden, "Without a token only this machine may ask%s", advice)
		}
		if !loopbackName(r.Host) {
			return problemf(http.StatusForbidden, "Without a token the name in the address must be localhost or 127.0.0.1, and is %q%s", r.Host, advice)
		}
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return problemf(http.StatusForbidden, "Without a token nobody may ask through a proxy, and this has %s%s", name, advice)
		}
	}
	return foreign(r, false)
}

func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
