package serve

import (
	"context"
	"os"
)

// reload opens the logs again, and reads rules, lists, certificates, tokens, users and the keys of
// slips again. What cannot be read stays as it was.
func (s *server) reload() {
	s.log.Info("reloading: logs are opened again; rules, lists, certificates, tokens and users are read again")
	s.logs.reopen()
	if s.rules != nil && s.rules.Watcher != nil {
		s.rules.Reload()
	}
	s.gateway.tls.again()
	s.admin.again()
	s.slips.keyed.again()
	s.checkDoor.again()
	s.respDoor.again()
	s.rlsDoor.tls.again()
}

// reloadWhen calls reload on signals until ctx ends.
func (s *server) reloadWhen(ctx context.Context, told <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			s.reload()
		}
	}
}
