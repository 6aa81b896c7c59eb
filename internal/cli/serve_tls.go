package cli

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/bounded"
)

// certificate is that of the gateway, read again when its files change.
type certificate struct {
	files [2]string // with the certificate and with its key
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time      // under mu; when the files were last looked at
	seen   [2]fs.FileInfo // under mu; as they were then, nil: not there
	made   *tls.Certificate
}

// lookAgain is how long the files are believed to be as they were.
const lookAgain = time.Second

func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: [2]string{cert, key}, log: log}
	c.changed()
	made, err := bounded.KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the gateway: %w", err)
	}
	c.made, c.looked = &made, time.Now()
	return c, nil
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
		c.log.Error("the certificate was not reloaded: the one before stays in use", "file", c.files[0], "err", err)
		return
	}
	c.made = &made
	c.log.Info("certificate reloaded", "file", c.files[0], "until", made.Leaf.NotAfter)
}
