package checkapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// tokenHeader is where proxies present the token, since Authorization belongs to their clients.
const tokenHeader = "X-Tidegate-Token"

// guard checks whether a caller may ask.
type guard struct {
	token  func() string // nil means there is none
	certs  bool
	unix   bool
	hashed atomic.Pointer[hashedToken]
}

// hashedToken is the token and its hash: comparing hashes does not reveal its length.
type hashedToken struct {
	text string
	sum  [sha256.Size]byte
}

// secret returns the current token; nil if there is none.
func (g *guard) secret() *hashedToken {
	if g.token == nil {
		return nil
	}
	text := g.token()
	if text == "" {
		return nil
	}
	if h := g.hashed.Load(); h != nil && h.text == text {
		return h
	}
	h := &hashedToken{text, sha256.Sum256([]byte(text))}
	g.hashed.Store(h)
	return h
}

func (h *hashedToken) is(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], h.sum[:]) == 1
}

// proved reports whether the peer is permitted without a token.
func (g *guard) proved(r *http.Request) bool {
	return g.certs && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 || g.unix && isUnix(r)
}

func isUnix(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local != nil && local.Network() == "unix"
}

// refuse returns why a caller of the API is not permitted.
func (g *guard) refuse(r *http.Request) *problem {
	secret := g.secret()
	if secret == nil && !g.certs {
		return refuseFar(r)
	}
	if secret != nil {
		given, ok := presented(r.Header)
		if ok && secret.is(given) {
			return nil
		}
		if ok {
			return problemf(http.StatusUnauthorized, "This is not the token of the check API.")
		}
	}
	if g.proved(r) {
		return nil
	}
	if secret == nil {
		return problemf(http.StatusUnauthorized, "The check API needs a client certificate that it can verify.")
	}
	return problemf(http.StatusUnauthorized, "The check API needs its token, as X-Tidegate-Token: TOKEN or Authorization: Bearer TOKEN.")
}

// presented returns the token in a request.
func presented(h http.Header) (token string, ok bool) {
	if lines := h[tokenHeader]; len(lines) > 0 {
		return strings.TrimSpace(lines[0]), len(lines) == 1
	}
	lines := h["Authorization"]
	if len(lines) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// refuseFar returns why a caller is not permitted if the API is open: it must be on this machine,
// and not a browser that shows a page of another site.
func refuseFar(r *http.Request) *problem {
	if !isUnix(r) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !peer.Addr().Unmap().IsLoopback() {
			return problemf(http.StatusForbidden, "Without a token only this machine may ask; set check.token_file and present the token.")
		}
	}
	site := r.Header["Sec-Fetch-Site"]
	if len(r.Header["Origin"]) > 0 || len(site) > 0 && site[0] != "none" && site[0] != "same-origin" {
		return problemf(http.StatusForbidden, "Without a token no web page may ask; set check.token_file and present the token.")
	}
	return nil
}

// believes returns why the peer of a forward-auth request is not believed to be a proxy; nil if it
// is.
func (s *Server) believes(r *http.Request) *problem {
	lines := r.Header[tokenHeader]
	if len(lines) > 0 {
		if secret := s.guard.secret(); secret != nil {
			if len(lines) == 1 && secret.is(strings.TrimSpace(lines[0])) {
				return nil
			}
			return problemf(http.StatusForbidden, "This is not the token of the check API.")
		}
	}
	if s.guard.proved(r) || s.clientIP.TrustsPeer(r) {
		return nil
	}
	return problemf(http.StatusForbidden, "The peer is not known as a proxy, so what it says of a request is not believed; name its network in trust.proxies, or let it send X-Tidegate-Token.")
}
