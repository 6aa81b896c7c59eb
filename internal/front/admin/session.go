package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// SessionLasts is how long an operator stays signed in.
	SessionLasts = 12 * time.Hour
	// maxSessions bounds the memory; the oldest make room.
	maxSessions = 1000

	sessionCookie = "tidegate_session"
	// secureCookie is the name over TLS: browsers accept it only from this host, and only over TLS.
	secureCookie = "__Host-tidegate_session"
)

// session is an operator who has signed in with a token. Only the hash of the token is kept: it is
// looked up at each request, so a removed operator is signed out.
type session struct {
	token  [sha256.Size]byte
	began  time.Time
	expiry time.Time
}

// sessions are the sessions of this process, by the hash of their names.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]session // under mu
}

// begin returns the name of a new session; it never reuses a name from the client.
func (s *sessions) begin(token [sha256.Size]byte, now time.Time) (name string, expiry time.Time) {
	name, expiry = rand.Text()+rand.Text(), now.Add(SessionLasts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[[sha256.Size]byte]session)
	}
	var oldest [sha256.Size]byte
	for id, one := range s.all {
		if !one.expiry.After(now) {
			delete(s.all, id)
		} else if was, ok := s.all[oldest]; !ok || one.began.Before(was.began) {
			oldest = id
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(name))] = session{token, now, expiry}
	return name, expiry
}

// find returns a session that has not ended.
func (s *sessions) find(name string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[sha256.Sum256([]byte(name))]
	return one, ok && one.expiry.After(now)
}

func (s *sessions) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(name)))
}

// cookieName returns the name of the cookie on this connection.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return secureCookie
	}
	return sessionCookie
}

// sessionName returns the session name in a request; "" if it has none.
func sessionName(r *http.Request) string {
	if c := r.CookiesNamed(cookieName(r)); len(c) == 1 { // two: one was injected
		return c[0].Value
	}
	return ""
}

func setSession(w http.ResponseWriter, r *http.Request, name string, lasts time.Duration) {
	c := &http.Cookie{
		Name: cookieName(r), Value: name, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode, MaxAge: int(lasts.Seconds()),
	}
	if lasts <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
