package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard checks whether a request may use the API.
type guard struct {
	token [sha256.Size]byte // its hash: all are of one length
	open  bool              // there is no token
}

func newGuard(token string) guard {
	return guard{token: sha256.Sum256([]byte(token)), open: token == ""}
}

// who is asking, for the log; the problem is why they may not.
func (g *guard) who(r *http.Request) (string, *Problem) {
	if g.open {
		return "local", local(r)
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "nobody", problemf(http.StatusUnauthorized, "This needs the token of the admin listener, as Authorization: Bearer TOKEN.")
	}
	hash := sha256.Sum256([]byte(strings.TrimSpace(given)))
	if subtle.ConstantTimeCompare(hash[:], g.token[:]) != 1 {
		return "nobody", problemf(http.StatusUnauthorized, "This is not the token of the admin listener.")
	}
	return "token", nil
}

// local refuses requests from other machines, and those that a browser or a proxy on this
// machine sends on behalf of somebody else: another site's page may lead its own
// name to 127.0.0.1, and proxies put their own address in place of the client's.
func local(r *http.Request) *Problem {
	const advice = "; set admin.token_file and present the token."
	if r.RemoteAddr != "" && r.RemoteAddr != "@" { // else a Unix socket, which has permissions
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
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	return problemf(http.StatusForbidden, "Without a token no other site may ask%s", advice)
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

func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, p := s.guard.who(r)
		if p == nil {
			next.ServeHTTP(w, r)
			return
		}
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.Log.Warn("admin: write refused", "peer", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "why", p.Detail)
		}
		p.answer(w)
	})
}
