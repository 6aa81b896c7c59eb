package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// certificate is the certificate of a listener. It is read again when its files change.
type certificate struct {
	whose string    // "the gateway"
	files [2]string // with the certificate and with its key
	log   *slog.Logger

	mu   sync.Mutex
	disk followed         // under mu
	made *tls.Certificate // under mu
}

// loadCertificate returns nil if the listener has none.
func loadCertificate(whose string, files config.KeyPair, log *slog.Logger) (*certificate, error) {
	if files.Cert == "" {
		return nil, nil
	}
	c := &certificate{whose: whose, files: [2]string{files.Cert, files.Key}, log: log, disk: follow(files.Cert, files.Key)}
	made, err := bounded.KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", whose, err)
	}
	c.made = &made
	return c, nil
}

// config returns the configuration of a server; nil for plain HTTP.
func (c *certificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// again reads the files now.
func (c *certificate) again() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disk.look(time.Now())
	c.reload()
}

// get implements GetCertificate of [tls.Config]. If the files cannot be read, the previous
// certificate stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.disk.changed() {
		c.reload()
	}
	return c.made, nil
}

func (c *certificate) reload() {
	made, err := bounded.KeyPair(c.files[0], c.files[1])
	if err != nil {
		c.log.Error("the certificate was not reloaded: the previous one stays in use", "of", c.whose, "file", c.files[0], "err", err)
		return
	}
	c.made = &made
	c.log.Info("certificate reloaded", "of", c.whose, "file", c.files[0], "until", made.Leaf.NotAfter)
}
