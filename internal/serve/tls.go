package serve

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/lang/bounded"
)

// certificate is that of a listener, read again when its files change.
type certificate struct {
	whose string    // "the gateway"
	files [2]string // with the certificate and with its key
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time      // under mu; when the files were last looked at
	seen   [2]fs.FileInfo // under mu; as they were then, nil: not there
	made   *tls.Certificate
}

// lookAgain is how long the files are believed to be as they were.
const lookAgain = time.Second

// loadCertificate returns nil when none is wanted.
func loadCertificate(whose string, files config.KeyPair, log *slog.Logger) (*certificate, error) {
	if files.Cert == "" {
		return nil, nil
	}
	c := &certificate{whose: whose, files: [2]string{files.Cert, files.Key}, log: log}
	c.changed()
	made, err := bounded.KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", whose, err)
	}
	c.made, c.looked = &made, time.Now()
	return c, nil
}

// config is for a server; nil speaks plain HTTP.
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
	c.looked = time.Now()
	c.changed()
	c.reload()
}

// get implements GetCertificate of [tls.Config]. What cannot be read leaves the
// one before in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookAgain {
		c.looked = now
		if c.changed() {
			c.reload()
		}
	}
	return c.made, nil
}

// changed reports whether a file is not what it was, and remembers what it is.
func (c *certificate) changed() (changed bool) {
	for i, name := range c.files {
		is, err := os.Stat(name)
		if err != nil {
			is = nil
		}
		changed = changed || !sameFile(is, c.seen[i])
		c.seen[i] = is
	}
	return changed
}

func (c *certificate) reload() {
	made, err := bounded.KeyPair(c.files[0], c.files[1])
	if err != nil {
		c.log.Error("the certificate was not reloaded: the one before stays in use", "of", c.whose, "file", c.files[0], "err", err)
		return
	}
	c.made = &made
	c.log.Info("certificate reloaded", "of", c.whose, "file", c.files[0], "until", made.Leaf.NotAfter)
}
