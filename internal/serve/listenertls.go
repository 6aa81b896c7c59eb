package serve

import (
	"crypto/tls"
	"log/slog"

	"tidegate.dev/tidegate/internal/config"
)

// listenerTLS is the TLS of a listener.
type listenerTLS struct {
	certificate *certificate // nil means plain text
	authorities *authorities // of callers; nil means that no client certificates are requested
}

// loadListenerTLS reads the files of c. If they include authorities, auth says which callers need a
// certificate.
func loadListenerTLS(whose string, c config.DoorTLS, auth tls.ClientAuthType, log *slog.Logger) (t listenerTLS, err error) {
	if t.certificate, err = loadCertificate(whose, c.KeyPair, log); err != nil || c.ClientCA == "" {
		return t, err
	}
	t.authorities, err = loadAuthorities(c.ClientCA, auth, t.certificate.get, log)
	return t, err
}

// again reads the files now.
func (t *listenerTLS) again() {
	t.certificate.again()
	t.authorities.again()
}

// http2 returns config for a listener that speaks HTTP/2 alone.
func (t *listenerTLS) http2() *tls.Config {
	c := t.config()
	if c != nil {
		c.NextProtos = []string{"h2"}
	}
	return c
}

// config returns the configuration of a server; nil for plain text.
func (t *listenerTLS) config() *tls.Config {
	c := t.certificate.config()
	if t.authorities != nil {
		c.GetConfigForClient = t.authorities.forClient
	}
	return c
}
