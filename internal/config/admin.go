package config

import (
	"net/netip"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
)

// Admin has the settings of the admin listener.
type Admin struct {
	// TokenFile is a file with a token that permits everything. Default: none. If none of
	// TokenFile, Tokens, TLS.ClientCA and SSO is set, the listener must not be reachable from other
	// machines.
	TokenFile string
	// Tokens is a file with operators, their roles and the hashes of their tokens.
	// Default: none.
	Tokens string
	// Audit is a file to which orders of operators and changes of rules are appended. Default: none.
	Audit string
	// State is a file that keeps bans and overrides on this machine. Default: none.
	State string
	// Followers is how many instances may follow the rules of this one at once. Default: 16.
	Followers int
	// Pages is how many pages of the dashboard may be open at once. Default: 100.
	Pages int
	// TLS has its certificate, and the roles of operators with certificates. Default: none.
	TLS AdminTLS
	// SSO says which proxies sign operators in. Default: none.
	SSO SSO
}

// AdminTLS is the TLS of the admin listener: certificate and key, or neither. With a ClientCA,
// client certificates are requested but optional.
type AdminTLS struct {
	DoorTLS
	Roles []string // NAME=ROLE by common name of the certificate, * for all others; default: none
}

// SSO is single sign-on: proxies that name the operator of a request in a header.
type SSO struct {
	Header string         // with the name of the operator; default: none
	From   []netip.Prefix // the proxies that set it
	Roles  []string       // NAME=ROLE, * for all others
}

// AdminRoles are the roles that an operator can have.
var AdminRoles = []string{"view", "operate", "rule", "scrape"}

// SplitRole splits NAME=ROLE at its last =.
func SplitRole(item string) (name, role string) {
	i := strings.LastIndexByte(item, '=')
	return strings.TrimSpace(item[:max(i, 0)]), strings.TrimSpace(item[i+1:])
}

// nameRole is an item of roles: NAME=ROLE.
var nameRole = codec[string]{
	read: func(w rawValue) (string, mistake) {
		name, role := SplitRole(w.text)
		if name == "" {
			return "", advised("does not say who: "+quote(w.text), "write the name of an operator and its role, as in `alice=operate`")
		}
		if !slices.Contains(AdminRoles, role) {
			return "", notOneOf(role, AdminRoles)
		}
		return name + "=" + role, mistake{}
	},
	write: func(v string) string { return v },
}

// ssoHeader is a header name without another meaning for the listener.
var ssoHeader = codec[string]{
	read: func(w rawValue) (string, mistake) {
		for _, taken := range []string{"Authorization", "Host", "Origin", "Cookie", "Content-Type", "X-Forwarded-For", "Forwarded", "Sec-Fetch-Site"} {
			if strings.EqualFold(w.text, taken) {
				return "", advised("means something else: "+quote(w.text), "let your proxy set a header of its own, as in `X-Forwarded-User`")
			}
		}
		return headerName.read(w)
	},
	write: func(v string) string { return v },
}

// checkAdmin reports settings of the admin listener that contradict each other.
func (l *loader) checkAdmin() {
	a := l.config.Admin
	l.checkDoorTLS("admin.tls", a.TLS.DoorTLS)
	l.checkOpenAdmin()
	l.checkRoles("admin.tls.roles", a.TLS.Roles)
	l.checkRoles("admin.sso.roles", a.SSO.Roles)
	switch {
	case !l.sound("admin.tls.client_ca", "admin.tls.roles"):
	case a.TLS.ClientCA != "" && len(a.TLS.Roles) == 0:
		l.clash("admin.tls.client_ca", diag.Error, "`admin.tls.client_ca` is given, and nobody with a certificate has a role", "say in `admin.tls.roles` what they may, as in `roles: { alice: operate }`")
	case a.TLS.ClientCA == "" && len(a.TLS.Roles) > 0:
		l.clash("admin.tls.roles", diag.Error, "`admin.tls.roles` is given, and nothing verifies certificates", "name their authorities in `admin.tls.client_ca`")
	}
	l.checkSSO(a.SSO)
}

// checkOpenAdmin reports an admin listener that other machines can reach without authentication.
func (l *loader) checkOpenAdmin() {
	const path = "listen.admin"
	a, at := l.config.Admin, l.config.Listen.Admin
	asks := a.TokenFile != "" || a.Tokens != "" || a.TLS.ClientCA != "" || a.SSO.Header != ""
	if asks || at.Local() || !l.sound(path, "admin.token_file", "admin.tokens", "admin.tls.client_ca", "admin.sso.header") {
		return
	}
	l.clash(path, diag.Error, quote(path)+" can be reached from other machines, and asks for no token: "+quote(at.String()),
		"name a file with operators in `admin.tokens`, or listen on "+quote("127.0.0.1:"+at.port()))
}

// checkRoles reports names that are listed twice.
func (l *loader) checkRoles(path string, roles []string) {
	var seen []string
	for i, item := range roles {
		name, _ := SplitRole(item)
		if slices.Contains(seen, name) && l.sound(path) {
			l.clashItem(path, i, diag.Error, quote(path)+" has "+quote(name)+" twice", "keep one of them")
		}
		seen = append(seen, name)
	}
}

// checkSSO requires all three settings of SSO or none, and proxies that are not everybody.
func (l *loader) checkSSO(s SSO) {
	const header, from, roles = "admin.sso.header", "admin.sso.from", "admin.sso.roles"
	if !l.sound(header, from, roles) {
		return
	}
	parts := []struct {
		path string
		has  bool
		hint string
	}{
		{header, s.Header != "", "say in `admin.sso.header` which header has the name of the operator"},
		{from, len(s.From) > 0, "name the address of your proxy in `admin.sso.from`: nobody else may say who has signed in"},
		{roles, len(s.Roles) > 0, "say in `admin.sso.roles` what they may, as in `roles: { alice: operate }`"},
	}
	for _, has := range parts {
		if !has.has {
			continue
		}
		for _, lacks := range parts {
			if !lacks.has {
				l.clash(has.path, diag.Error, quote(has.path)+" is given without "+quote(lacks.path), lacks.hint)
				return
			}
		}
	}
	for i, p := range s.From {
		if p.Bits() == 0 {
			l.clashItem(from, i, diag.Error, quote(p.String())+" is everybody: anybody could say which operator they are", "name the address of your proxy")
		}
	}
}
