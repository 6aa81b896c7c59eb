package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// adminFront is the admin listener, with what identifies operators.
type adminFront struct {
	listener  net.Listener
	tls       listenerTLS                    // its authorities verify the certificates of operators
	token     *followedFile[string]          // allows everything; nil if there is none
	operators *followedFile[admin.Operators] // nil if no operator has a token of their own
}

// maxOperatorsFile is the maximum length of the file of operators.
const maxOperatorsFile = 4 << 20

func readOperators(file string) (admin.Operators, error) {
	text, err := bounded.ReadFile(file, maxOperatorsFile)
	if err != nil {
		return nil, fmt.Errorf("read the operators: %w", err)
	}
	return admin.ParseOperators(file, text)
}

// prepare reads the certificates, tokens and operators.
func (f *adminFront) prepare(c config.Admin, log *slog.Logger) (err error) {
	const whose = "the admin listener"
	// A certificate is optional: health is public, and a token also identifies an operator.
	if f.tls, err = loadListenerTLS(whose, config.DoorTLS{KeyPair: c.TLS.KeyPair, ClientCA: c.TLS.ClientCA}, tls.VerifyClientCertIfGiven, overHTTP, log); err != nil {
		return err
	}
	if c.TokenFile != "" {
		read := func(file string) (string, error) { return readToken(file, whose) }
		if f.token, err = followFile("the token of "+whose, c.TokenFile, read, log); err != nil {
			return err
		}
	}
	if c.Tokens != "" {
		f.operators, err = followFile("the file of operators", c.Tokens, readOperators, log)
	}
	return err
}

// again reads all files now.
func (f *adminFront) again() {
	f.tls.again()
	f.token.again()
	f.operators.again()
}

// options sets who may do what.
func (f *adminFront) options(c config.Admin, to *admin.Options) {
	if f.token != nil {
		to.Token = f.token.get
	}
	if f.operators != nil {
		to.Operators = f.operators.get
	}
	if f.tls.authorities != nil {
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
