package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/internal/lang/redisurl"
)

// CheckURL reports what is wrong with a URL. It neither connects nor reads the files that
// the URL names.
func CheckURL(url string) error { return redisurl.Check(url) }

// target returns what c says, as a URL would.
func (c *Config) target() redisurl.Target {
	return redisurl.Target{
		Addrs: c.Addrs, Cluster: c.Cluster, Master: c.Master, DB: c.DB, Prefix: c.Prefix, TLS: c.TLS != nil,
		Username: c.Username, Password: c.Password, SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
	}
}

// readURL fills in what the URL says, and reads the files that it names.
func (c *Config) readURL() error {
	t := c.target()
	if err := t.Read(c.URL); err != nil {
		return err
	}
	c.Addrs, c.Cluster, c.Master, c.DB, c.Prefix = t.Addrs, t.Cluster, t.Master, t.DB, t.Prefix
	c.Username, c.Password, c.SentinelUsername, c.SentinelPassword = t.Username, t.Password, t.SentinelUsername, t.SentinelPassword
	if t.HasUser {
		c.PasswordFile = ""
	}
	if t.TLS && c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if !t.NamesFiles() {
		return nil
	}
	if c.TLS == nil {
		return redisurl.ErrNoTLS
	}
	return c.readTLS(t.CA, t.Cert, t.Key)
}

// readTLS reads the files that TLS needs beyond what the machine trusts.
func (c *Config) readTLS(ca, cert, key string) error {
	c.TLS = c.TLS.Clone()
	if ca != "" {
		pem, err := bounded.ReadFile(ca, bounded.PEM)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca: %s has no certificate in PEM", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := bounded.KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
