package serve

import (
	"log/slog"
	"net"
	"slices"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/checkapi"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/serve/handover"
)

// checkDoor is the listener of the check API.
type checkDoor struct {
	listener net.Listener // nil: it is not open
	tls      doorTLS
	token    *followedFile[string] // nil: none is asked for
	callers  *callers
}

func (d *checkDoor) prepare(c *config.Config, log *slog.Logger) (err error) {
	if !c.Listen.Check.Open() {
		return nil
	}
	const whose = "the check API"
	if d.tls, err = loadDoorTLS(whose, c.Check.TLS, log); err != nil {
		return err
	}
	if c.Check.TokenFile != "" {
		read := func(file string) (string, error) { return readToken(file, whose) }
		d.token, err = followFile("the token of "+whose, c.Check.TokenFile, read, log)
	}
	return err
}

func (d *checkDoor) again() {
	d.tls.again()
	d.token.again()
}

// openCheck returns a server for the check API.
func (s *server) openCheck() (handover.Server, error) {
	c := s.config
	o := checkapi.Options{
		Desk:         s.checkDoor.callers.desk,
		HTTP:         httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: c.Trust.Proxies, TrustUnix: c.Trust.Unix}},
		EncodedSlash: c.Paths.EncodedSlash == config.Allow,
		Certificates: c.Check.TLS.ClientCA != "",
		Unix:         c.Listen.Check.Network == "unix",
		Deadline:     c.Check.Deadline,
		Log:          s.log,
	}
	if s.checkDoor.token != nil {
		o.Token = s.checkDoor.token.get
	}
	if s.rules != nil {
		o.Known = s.rules.knows
		o.Samples = s.rules.samples
	}
	return tlsServer{listen.NewServer(listen.ServerOptions{
		Handler: checkapi.New(o),
		Limits: listen.HTTPLimits{
			Limits:      listen.Limits{Connections: c.Limits.Connections, Stall: orAny(c.Limits.Stall)},
			HeaderBytes: int(c.Limits.Header),
			ReadHeader:  c.Limits.ReadHeader,
			Read:        c.Limits.Read,
			Write:       c.Limits.Write,
			Idle:        c.Limits.Idle,
		},
		IdleGrace: s.idleGrace(),
		Log:       s.log,
	}), s.checkDoor.tls.config()}, nil
}

// knows reports whether the rules in force have an identity of that name.
func (r *ruleSource) knows(name string) bool {
	return slices.Contains(r.live.Set().Identities(), name)
}

// samples are requests that meet the rules in force.
func (r *ruleSource) samples() (all []checkapi.Sample) {
	for _, s := range r.live.Set().Samples() {
		all = append(all, checkapi.Sample(s))
	}
	return all
}
