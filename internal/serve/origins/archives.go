package origins

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"tidegate.dev/tidegate/internal/lang/bounded"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/rules/source/etcd"
	"tidegate.dev/tidegate/rules/source/redis"
)

// openRedis opens a rule set in Redis.
func openRedis(url string, o Options) (source.Origin, error) {
	c := redis.Config{URL: url, Username: o.User, PasswordFile: o.PasswordFile}
	if scheme, _, _ := strings.Cut(url, "://"); strings.HasPrefix(scheme, "rediss") || scheme == "valkeys" {
		var err error
		if c.TLS, err = o.tls(); err != nil {
			return nil, err
		}
	}
	return redis.Open(c)
}

// openEtcd opens a rule set in etcd.
func openEtcd(url string, o Options) (source.Origin, error) {
	c := etcd.Config{URL: url, Username: o.User, PasswordFile: o.PasswordFile}
	if strings.HasPrefix(url, "etcds://") {
		var err error
		if c.TLS, err = o.tls(); err != nil {
			return nil, err
		}
	}
	return etcd.Open(c)
}

// tls returns how connections over TLS are made.
func (o *Options) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		text, err := bounded.ReadFile(o.CA, bounded.PEM)
		if err != nil {
			return nil, fmt.Errorf("the authorities of the source: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the authorities of the source: %s has no certificate in PEM", o.CA)
		}
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := bounded.KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate for the source: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
