package serve

import (
	"net"
	"time"
)

// cutOff is how long to wait for cut-off requests to reach the access log.
const cutOff = time.Second

// awaitCut returns when no request is in flight, or after cutOff.
func (s *server) awaitCut() {
	end := time.Now().Add(cutOff)
	for _, g := range s.gateway.opened {
		for g.InFlight() > 0 && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
	}
}

// close ends everything that the server runs. It skips parts that were not opened.
func (s *server) close() {
	if s.example.endTraffic != nil {
		s.example.endTraffic()
	}
	s.awaitCut()
	if err := s.deferred.close(); err != nil {
		s.log.Warn("deferred requests were not closed cleanly", "err", err)
	}
	s.closeTraces()
	s.rlsDoor.close()
	if s.local != nil {
		s.local.shortage.close()
		s.local.snapshotter.close()
	}
	s.lately.close()
	if s.board != nil {
		s.board.Close()
	}
	s.plane.close()
	if s.rules != nil {
		s.rules.close()
	}
	s.past.close()
	if s.audit.Log != nil {
		if err := s.audit.Close(); err != nil {
			s.log.Warn("the audit log was not closed cleanly", "err", err)
		}
	}
	if s.shared != nil {
		_ = s.shared.Close()
	}
	if s.example.upstream != nil {
		s.example.upstream.Close()
	}
	for _, l := range []net.Listener{s.gateway.listener, s.checkDoor.listener, s.respDoor.listener, s.rlsDoor.listener, s.rlsDoor.http, s.admin.listener} {
		if l != nil {
			l.Close()
		}
	}
	if s.offenders != nil {
		s.offenders.Close()
	}
	s.logs.close()
}
