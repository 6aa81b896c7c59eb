package node

import (
	"time"

	"tidegate.dev/tidegate"
)

// moved checks whether counters have moved to other servers, and moves their backlog, and slots
// that are to be given back, to those. It retires a server that is gone.
func (s *server) moved() {
	n := s.node
	names := n.inner.Servers()
	if len(names) == 0 || s.layout == &names[0] {
		return
	}
	s.layout = &names[0]
	n.mu.Lock()
	posts := make([]post, 0, len(s.backlog.entries))
	for id, d := range s.backlog.entries {
		posts = append(posts, post{id: id, entry: d})
	}
	for _, p := range s.backlog.doubtful {
		posts = append(posts, p)
	}
	limits := make([]*tidegate.Limit, len(posts))
	for i, p := range posts {
		limits[i] = p.entry.limit
	}
	releases := s.releases
	s.releases = nil
	n.mu.Unlock()

	homes := make([]*server, len(posts))
	for i, p := range posts {
		homes[i] = n.server(n.inner.Server(limits[i], p.id.key))
	}
	var back []*server
	for _, r := range releases {
		back = append(back, n.serverOf(&r.checks[0]))
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	for i, home := range homes {
		p := posts[i]
		switch {
		case home == s:
			continue
		case p.doubt && s.backlog.doubtful[p.id].entry == p.entry:
			delete(s.backlog.doubtful, p.id)
		case !p.doubt && s.backlog.entries[p.id] == p.entry:
			delete(s.backlog.entries, p.id)
		default: // it was posted, or forgotten, meanwhile
			continue
		}
		home.backlog.putBack([]post{p}, now)
		home.repayLocked()
	}
	for i, home := range back {
		home.releases = append(home.releases, releases[i])
		home.repayLocked()
	}
	if s.number >= len(names) || names[s.number] == "" {
		s.retireLocked(now)
	}
}

// retireLocked resets the circuit of a server that is no longer part of the backend.
func (s *server) retireLocked(now time.Duration) {
	if s.circuit.state == OK {
		return
	}
	s.circuit = circuit{failures: s.circuit.failures, since: now}
	s.share.Store(whole)
	s.turned = now
	s.held.begin(now)
}
