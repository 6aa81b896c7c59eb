package serve

import (
	"crypto/tls"
	"log/slog"

	"tidegate.dev/tidegate/internal/config"
)

// doorTLS is what a listener for callers speaks.
type doorTLS struct {
	certificate *certificate // nil means plain text
	authorities *authorities // of callers; nil means they need no certificate
}

func loadDoorTLS(whose string, c config.DoorTLS, log *slog.Logger) (t doorTLS, err error) {
	if t.certificate, err = loadCertificate(whose, c.KeyPair, log); err != nil || c.ClientCA == "" {
		return t, err
	}
	t.authorities, err = loadAuthorities(c.ClientCA, tls.RequireAndVerifyClientCert, t.certificate.get, log)
	return t, err
}

func (t *doorTLS) again() {
	t.certificate.again()
	t.authorities.again()
}

// http2 is config for a listener that speaks HTTP/2 alone.
func (t *doorTLS) http2() *tls.Config {
	c := t.config()
	if c != nil {
		c.NextProtos = []string{"h2"}
	}
	return c
}

// config is nil for plain text.
func (t *doorTLS) config() *tls.Config {
	c := t.certificate.config()
	if t.authorities != nil {
		c.GetConfigForClient = t.authorities.forClient
	}
	return c
}
