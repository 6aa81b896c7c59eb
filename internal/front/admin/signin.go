package admin

import (
	"net/http"
	"time"
)

// Who describes the operator of a request, for pages.
type Who struct {
	Name string `json:"name"`
	Role string `json:"role"`
	Via  string `json:"via"` // local, token, certificate, sso or session
	// Ends is when the session ends; it is left out for other ways.
	Ends time.Time `json:"ends,omitzero"`
	// Version of the program that answers.
	Version string `json:"version,omitempty"`
}

// session shows the current operator, signs in with a token, and signs out.
func (s *server) session(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.access(only(Scrape), s.read(s.whoAsks)).ServeHTTP(w, r)
	case http.MethodPost:
		s.signIn(w, r)
	case http.MethodDelete:
		s.signOut(w, r)
	default:
		notAllowed(w, r, "GET, HEAD, POST, DELETE")
	}
}

func (s *server) whoAsks(r *http.Request) (any, error) {
	o := operatorOf(r.Context())
	return s.who(o, r), nil
}

func (s *server) who(o Operator, r *http.Request) Who {
	is := Who{Name: o.Name, Role: o.Role.String(), Via: o.Via, Version: s.Version}
	if one, ok := s.guard.sessions.find(sessionName(r), time.Now()); ok && o.Via == viaSession {
		is.Ends = one.expiry.UTC().Truncate(time.Second)
	}
	return is
}

// signIn exchanges the token of an operator for a session.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) {
	p := posted(w, r, maxBody)
	if p == nil {
		p = foreign(r, s.guard.fromProxy(r))
	}
	var q struct {
		Token string `json:"token"`
	}
	if p == nil {
		if err := decode(r, &q); err != nil {
			p = asProblem(err)
		}
	}
	if p == nil && s.guard.open() {
		p = problemf(http.StatusBadRequest, "There are no tokens here: whoever is on this machine is let in.")
	}
	if p != nil {
		p.answer(w)
		return
	}
	o, hash, p := s.guard.findToken(q.Token)
	if p == nil && o.Role < View {
		p = problemf(http.StatusForbidden, "%s has the role %s, and pages need %s.", o.Name, o.Role, View)
	}
	if p != nil {
		s.refuse(o, r, p)
		p.answer(w)
		return
	}
	s.guard.sessions.end(sessionName(r))
	name, expiry := s.guard.sessions.begin(hash, time.Now())
	setSession(w, r, name, SessionLasts)
	s.Log.Info("admin: signed in", "who", o.Name, "peer", r.RemoteAddr)
	o.Via = viaSession
	s.audit(entryOf(o, r, operation{action: "sign-in"}))
	is := s.who(o, r)
	is.Ends = expiry.UTC().Truncate(time.Second)
	answer(w, http.StatusOK, "application/json", is)
}

// signOut ends the session of the request, if there is one.
func (s *server) signOut(w http.ResponseWriter, r *http.Request) {
	if p := foreign(r, s.guard.fromProxy(r)); p != nil {
		p.answer(w)
		return
	}
	if o, ok := s.guard.bySession(r); ok {
		s.guard.sessions.end(sessionName(r))
		s.Log.Info("admin: signed out", "who", o.Name, "peer", r.RemoteAddr)
		s.audit(entryOf(o, r, operation{action: "sign-out"}))
	}
	setSession(w, r, "", 0)
	w.WriteHeader(http.StatusNoContent)
}
