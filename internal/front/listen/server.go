package listen

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// HTTPLimits bound connections that speak HTTP, and the requests on them.
type HTTPLimits struct {
	Limits                    // Handshake: 0 means ReadHeader. Stall also bounds silence in the middle of a request body
	HeaderBytes int           // of the request line and all headers; 0 means 64 KiB
	ReadHeader  time.Duration // until the end of the request headers; 0 means 10s
	Read        time.Duration // until the end of the request body; 0 means any
	Write       time.Duration // from the request headers until the response is sent, streams included; 0 means any
	Idle        time.Duration // between two requests of a connection; 0 means 2m
	Tunnel      time.Duration // of silence on both sides of a hijacked connection, or of a request that is answered while its body is sent; 0 means 1h, negative any
}

// complete fills in the defaults, but for those that a Group fills in.
func (l *HTTPLimits) complete() {
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 64<<10)
	l.ReadHeader = cmp.Or(l.ReadHeader, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Tunnel = max(0, cmp.Or(l.Tunnel, time.Hour))
	l.Handshake = cmp.Or(l.Handshake, l.ReadHeader)
}

// ServerOptions configure a Server. A Handler is required.
type ServerOptions struct {
	// Handler gets the requests that can be read in one way only, on connections within
	// the limit. Others are answered 400 or 503.
	Handler http.Handler
	// OwnClients says that Handler opens a Client for each request and uses it for
	// everything: refusals, bodies, writes, the end, and to notice that the client leaves: net/http
	// may not end the context of a request over HTTP/1 when that happens, see [Client.Watch].
	OwnClients bool
	// Limits bound connections and requests.
	Limits HTTPLimits
	// IdleGrace is how long Shutdown leaves idle connections open, so that their clients
	// can send one more request and be told that the connection ends; 0 means 5s, negative
	// not at all.
	IdleGrace time.Duration
	// Reclaim frees files and memory; see [Options].
	Reclaim func()
	// Log gets what an operator should know; nil means that nothing is logged.
	Log *slog.Logger
}

// Server serves HTTP/1 and HTTP/2 and holds clients to limits that net/http alone does not
// have. It refuses requests with two lengths, which net/http accepts.
type Server struct {
	o        ServerOptions
	group    *Group
	http     *http.Server
	requests atomic.Int64 // in flight, hijacked ones included
	watcher  *watcher     // nil unless clients are watched by Handler
	draining atomic.Bool
	noGrace  atomic.Bool

	mu        sync.Mutex
	listeners []net.Listener // under mu: those that are served

	life context.Context // of requests; ends with Close
	stop context.CancelFunc
}

// NewServer returns a Server. The caller closes it.
func NewServer(o ServerOptions) *Server {
	o.Limits.complete()
	o.IdleGrace = max(0, cmp.Or(o.IdleGrace, 5*time.Second))
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o}
	s.group = NewGroup(Options{Limits: o.Limits.Limits, NotTLS: answerPlainHTTP, Reclaim: o.Reclaim, Log: o.Log})
	s.o.Limits.Limits = s.group.o.Limits // with defaults
	s.life, s.stop = context.WithCancel(context.Background())
	handler := o.Handler
	if o.OwnClients {
		s.watcher = &watcher{watches: make(map[*Watch]struct{})}
	} else {
		handler = s.guard(handler)
	}
	l := &s.o.Limits
	s.http = &http.Server{
		Handler:                      s.count(handler),
		DisableGeneralOptionsHandler: true, // OPTIONS * is for the handler, like the rest
		ReadHeaderTimeout:            l.ReadHeader,
		ReadTimeout:                  l.Read,
		WriteTimeout:                 l.Write,
		IdleTimeout:                  l.Idle,
		MaxHeaderBytes:               l.HeaderBytes,
		ErrorLog:                     slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		BaseContext:                  func(net.Listener) context.Context { return s.life },
		ConnContext:                  withConnInfo,
		ConnState:                    track,
		HTTP2:                        &http.HTTP2Config{SendPingTimeout: l.Stall},
	}
	return s
}

// count counts the requests in flight.
func (s *Server) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer s.requests.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// track follows the state of a connection, as the ConnState of http.Server.
func track(c net.Conn, state http.ConnState) {
	if conn := ConnOf(c); conn != nil {
		conn.SetActive(state == http.StateActive)
	}
	if state == http.StateHijacked {
		if t, ok := c.(interface{ becomeTunnel() }); ok {
			t.becomeTunnel()
		}
	}
}

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return s.group.Open() }

// Serve answers on l until Shutdown or Close, and then returns nil. With a config it speaks
// TLS, and HTTP/2 to clients that can. It may be called for several listeners, and closes l.
func (s *Server) Serve(l net.Listener, config *tls.Config) error {
	bounded := httpListener{s.group.Listen(s.life, l, offerHTTP(config)), &s.o.Limits, s.watcher}
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		return bounded.Close()
	}
	s.listeners = append(s.listeners, bounded)
	s.mu.Unlock()
	err := s.http.Serve(bounded)
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() {
		return nil
	}
	return err
}

// offerHTTP returns config with the protocols that a Server speaks.
func offerHTTP(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	for _, proto := range []string{"h2", "http/1.1"} {
		if !slices.Contains(config.NextProtos, proto) {
			config.NextProtos = append(slices.Clip(config.NextProtos), proto)
		}
	}
	return config
}

// answerPlainHTTP tells a client that speaks HTTP without TLS what this port speaks.
func answerPlainHTTP(conn net.Conn, start []byte) {
	if slices.Contains(methodPrefixes, string(start[:3])) {
		_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis port speaks HTTPS.\n")
	}
}

var methodPrefixes = []string{"GET", "HEA", "POS", "PUT", "PAT", "DEL", "OPT"}

// httpListener follows the requests on the connections that speak HTTP/1.
type httpListener struct {
	net.Listener
	limits  *HTTPLimits
	watcher *watcher
}

func (l httpListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	secure, ok := c.(*tls.Conn)
	if !ok {
		return newHTTP1Conn(c, l.limits, l.watcher), nil
	}
	if state := secure.ConnectionState(); state.NegotiatedProtocol != "h2" {
		return newHTTP1TLSConn(secure, state, l.limits, l.watcher), nil
	}
	return c, nil
}
