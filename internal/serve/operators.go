package serve

import (
	"crypto/tls"
	"fmt"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// operators are the ways in which the admin listener tells who is asking.
type operators struct {
	token       *followedFile[string]       // may do everything; nil if there is none
	roster      *followedFile[admin.Roster] // nil if nobody has a token of their own
	certificate *certificate                // of the listener; nil for plain HTTP
	authorities *authorities                // of operators' certificates; nil if they do not count
}

// maxRoster is how long the file of operators may be.
const maxRoster = 4 << 20

func readRoster(file string) (admin.Roster, error) {
	text, err := bounded.ReadFile(file, maxRoster)
	if err != nil {
		return nil, fmt.Errorf("read the operators: %w", err)
	}
	return admin.ParseRoster(file, text)
}

func (s *server) loadOperators() (err error) {
	c, o := s.config.Admin, &s.operators
	if o.certificate, err = loadCertificate("the admin listener", c.TLS.KeyPair, s.log); err != nil {
		return err
	}
	if c.TLS.ClientCA != "" {
		// Nobody has to have one: health is for everybody, and a token does as well.
		if o.authorities, err = loadAuthorities(c.TLS.ClientCA, tls.VerifyClientCertIfGiven, o.certificate.get, s.log); err != nil {
			return err
		}
	}
	if c.TokenFile != "" {
		const whose = "the admin listener"
		read := func(file string) (string, error) { return readToken(file, whose) }
		if o.token, err = followFile("the token of "+whose, c.TokenFile, read, s.log); err != nil {
			return err
		}
	}
	if c.Tokens != "" {
		o.roster, err = followFile("the file of operators", c.Tokens, readRoster, s.log)
	}
	return err
}

// again reads all files now.
func (o *operators) again() {
	o.certificate.again()
	o.authorities.again()
	o.token.again()
	o.roster.again()
}

// tls is what the admin listener speaks; nil means plain HTTP.
func (o *operators) tls() *tls.Config {
	c := o.certificate.config()
	if o.authorities != nil {
		c.GetConfigForClient = o.authorities.forClient
	}
	return c
}

// options fills in who may do what.
func (o *operators) options(c config.Admin, to *admin.Options) {
	if o.token != nil {
		to.Token = o.token.get
	}
	if o.roster != nil {
		to.Operators = o.roster.get
	}
	if o.authorities != nil {
		to.Certificates = rolesOf(c.TLS.Roles)
	}
	if c.SSO.Header != "" {
		to.SSO = &admin.SSO{Header: c.SSO.Header, From: c.SSO.From, Roles: rolesOf(c.SSO.Roles)}
	}
}

func rolesOf(items []string) map[string]admin.Role {
	roles := make(map[string]admin.Role)
	for _, item := range items {
		name, role := config.SplitRole(item)
		roles[name] = admin.ParseRole(role)
	}
	return roles
}
