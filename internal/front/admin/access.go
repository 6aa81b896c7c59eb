package admin

import "net/http"

// need is the role that a request needs: reads for GET and HEAD, writes for the rest.
type need struct{ reads, writes Role }

// only returns a need for the same role whatever the method is.
func only(role Role) need { return need{role, role} }

func (n need) of(r *http.Request) Role {
	if isRead(r) {
		return n.reads
	}
	return n.writes
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// access passes requests to next if the operator's role permits them.
func (s *server) access(n need, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, p := s.guard.who(r)
		if role := n.of(r); p == nil && o.Role < role {
			p = problemf(http.StatusForbidden, "%s has the role %s, and this needs %s.", o.Name, o.Role, role)
			if o.Role == Nobody {
				p = problemf(http.StatusForbidden, "%s has no role here.", o.Name)
			}
		}
		if p == nil {
			next.ServeHTTP(w, r.WithContext(withOperator(r.Context(), o)))
			return
		}
		if p.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		if !isRead(r) {
			s.refuse(o, r, p)
		}
		p.answer(w)
	})
}

// refuse logs a write that was not permitted.
func (s *server) refuse(o Operator, r *http.Request, p *Problem) {
	s.Log.Warn("admin: write refused", "who", o.Name, "peer", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "why", p.Detail)
	if more, ok := s.refusals.take(); ok {
		e := entryOf(o, r, operation{action: actionOf(r)})
		e.Result, e.Error, e.Skipped = Refused, p.Detail, more
		s.audit(e)
	}
}
