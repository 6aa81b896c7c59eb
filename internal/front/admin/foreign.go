package admin

import (
	"net/http"
	"net/url"
	"strings"
)

// foreign rejects requests that a browser sends for a page of another site, whatever credentials
// they have: browsers add certificates, and the cookies of a sign-in proxy, without the operator's
// intent. proxied: the peer is that proxy, whose X-Forwarded-Host is what the browser asked for.
func foreign(r *http.Request, proxied bool) *Problem {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "none" && site != "same-origin" {
			return problemf(http.StatusForbidden, "A page of another site may not ask, whatever token it presents (Sec-Fetch-Site: %.20q).", site)
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if !ownOrigin(r, origin, proxied) {
			return problemf(http.StatusForbidden, "A page of another site may not ask, whatever token it presents (Origin: %.100q).", origin)
		}
	}
	return nil
}

// ownOrigin reports whether a page of origin was served here.
func ownOrigin(r *http.Request, origin string, proxied bool) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false // null, too
	}
	if r.TLS != nil && u.Scheme != "https" && !proxied {
		return false // another listener of this host
	}
	hosts := []string{r.Host}
	if proxied {
		hosts = append(hosts, r.Header.Values("X-Forwarded-Host")...)
	}
	for _, host := range hosts {
		if host != "" && strings.EqualFold(withoutPort(host, u.Scheme), withoutPort(u.Host, u.Scheme)) {
			return true
		}
	}
	return false
}

// withoutPort removes the default port of a scheme.
func withoutPort(host, scheme string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}
