package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/lang/bounded"
)

// authorities are the CAs of client certificates. The file is read again when it changes; new
// connections use the new CAs.
type authorities struct {
	file     string
	auth     tls.ClientAuthType
	listener *tls.Config // without authorities
	log      *slog.Logger

	mu     sync.Mutex
	disk   followed    // under mu
	config *tls.Config // under mu
}

func loadAuthorities(file string, auth tls.ClientAuthType, listener *tls.Config, log *slog.Logger) (*authorities, error) {
	a := &authorities{file: file, auth: auth, listener: listener, log: log, disk: follow(file)}
	if err := a.load(); err != nil {
		return nil, fmt.Errorf("read the authorities of client certificates: %w", err)
	}
	return a, nil
}

// forClient implements GetConfigForClient of [tls.Config]. If the file cannot be read, the previous
// authorities stay in use.
func (a *authorities) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disk.changed() {
		a.reload()
	}
	return a.config, nil
}

// again reads the file now.
func (a *authorities) again() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.disk.look(time.Now())
	a.reload()
}

func (a *authorities) reload() {
	if err := a.load(); err != nil {
		a.log.Error("the authorities of client certificates were not reloaded: the previous ones stay in use", "file", a.file, "err", err)
		return
	}
	a.log.Info("authorities of client certificates reloaded", "file", a.file)
}

// load makes a separate config for every version of the file, with its own keys for session
// tickets, so that no TLS session outlives the authorities that verified it.
func (a *authorities) load() error {
	text, err := bounded.ReadFile(a.file, bounded.PEM)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return &fs.PathError{Op: "read", Path: a.file, Err: errors.New("there is no certificate in PEM")}
	}
	a.config = a.listener.Clone()
	a.config.ClientAuth, a.config.ClientCAs = a.auth, pool
	return nil
}
