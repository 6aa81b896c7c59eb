package serve

import (
	"crypto/tls"
	"log/slog"

	"tidegate.dev/tidegate/internal/config"
)

// listenerTLS is the TLS of a listener.
type listenerTLS struct {
	certificate *certificate // nil means plain text
	protocols   []string     // that clients are offered
	authorities *authorities // of callers; nil means that no client certificates are requested
}

// The protocols of listeners; nil is for one that negotiates none.
var (
	overHTTP  = []string{"h2", "http/1.1"}
	overHTTP2 = []string{"h2"} // gRPC
)

// loadListenerTLS reads the files of c. If they include authorities, auth says which callers need a
// certificate.
func loadListenerTLS(whose string, c config.DoorTLS, auth tls.ClientAuthType, protocols []string, log *slog.Logger) (t listenerTLS, err error) {
	t.protocols = protocols
	if t.certificate, err = loadCertificate(whose, c.KeyPair, log); err != nil || c.ClientCA == "" {
		return t, err
	}
	t.authorities, err = loadAuthorities(c.ClientCA, auth, t.config(), log)
	return t, err
}

// again reads the files now.
func (t *listenerTLS) again() {
	t.certificate.again()
	t.authorities.again()
}

// config returns the configuration of a server; nil for plain text.
func (t *listenerTLS) config() *tls.Config {
	c := t.certificate.config()
	if c != nil {
		c.NextProtos = t.protocols
	}
	if t.authorities != nil {
		c.GetConfigForClient = t.authorities.forClient
	}
	return c
}
