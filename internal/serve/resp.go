package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/internal/serve/handover"
)

// respDoor is the listener for Redis clients.
type respDoor struct {
	listener net.Listener // nil means it is not open
	tls      listenerTLS
	users    *followedFile[[]resp.User] // nil means that anybody may ask
	callers  *callers
}

func (d *respDoor) prepare(c *config.Config, log *slog.Logger) (err error) {
	if !c.Listen.RESP.Open() {
		return nil
	}
	if d.tls, err = loadListenerTLS("the RESP listener", c.RESP.TLS, tls.RequireAndVerifyClientCert, nil, log); err != nil {
		return err
	}
	if c.RESP.UsersFile != "" {
		d.users, err = followFile("the users of the RESP listener", c.RESP.UsersFile, readUsers, log)
	}
	return err
}

func (d *respDoor) again() {
	d.tls.again()
	d.users.again()
}

// aYear stands for no limit.
const aYear = 365 * 24 * time.Hour

// openRESP returns a server for Redis clients.
func (s *server) openRESP() (handover.Server, error) {
	l := s.config.Limits
	stall := l.Stall
	if stall == 0 { // no limit
		stall = aYear
	}
	o := resp.Options{
		Desk:    s.respDoor.callers.desk,
		Store:   s.counters,
		Paths:   strict.Paths{EncodedSlash: s.config.Paths.EncodedSlash == config.Allow},
		Version: s.version,
		Counted: s.respDoor.callers.count,
		Observe: s.respDoor.callers.observe,
		Refused: s.respDoor.callers.refused,
		Report:  func(err error) { s.log.Error("a connection of the RESP listener failed", "err", err) },
		Stall:   stall,
		Idle:    l.Idle,
	}
	if s.rules != nil {
		o.Known = s.rules.knows
	}
	ctx, end := context.WithCancel(context.Background())
	return &respServer{
		Server: resp.New(o), users: s.respDoor.users, ctx: ctx, end: end,
		conns: listen.NewGroup(listen.Options{Limits: listen.Limits{Connections: l.Connections, Surplus: -1, Stall: -1}, Log: s.log}),
		door:  &s.respDoor,
	}, nil
}

// respServer limits connections, and follows the file of users.
type respServer struct {
	*resp.Server
	users *followedFile[[]resp.User]
	conns *listen.Group
	door  *respDoor
	ctx   context.Context // of handshakes; ends with Close
	end   context.CancelFunc
}

// Serve implements [handover.Server].
func (r *respServer) Serve(l net.Listener) error {
	ctx, end := context.WithCancel(r.ctx)
	defer end()
	if r.users != nil {
		was := r.users.value.Load() // before SetUsers: what is read meanwhile is set by follow
		r.SetUsers(r.users.get())
		go r.follow(ctx, was)
	}
	return r.Server.Serve(r.conns.Listen(ctx, l, r.door.tls.config()))
}

// Close implements [handover.Server].
func (r *respServer) Close() error {
	r.end()
	return r.Server.Close()
}

// follow checks the file of users for changes since was until ctx ends.
func (r *respServer) follow(ctx context.Context, was *[]resp.User) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.users.get() // looks for changes
		if is := r.users.value.Load(); is != was {
			was = is
			r.SetUsers(*is)
		}
	}
}
