package serve

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/checkapi"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/serve/handover"
)

// checkDoor is the listener of the check API.
type checkDoor struct {
	listener net.Listener // nil means it is not open
	tls      listenerTLS
	token    *followedFile[string] // nil means that no token is required
	callers  *callers
}

func (d *checkDoor) prepare(c *config.Config, log *slog.Logger) (err error) {
	if !c.Listen.Check.Open() {
		return nil
	}
	const whose = "the check API"
	if d.tls, err = loadListenerTLS(whose, c.Check.TLS, tls.RequireAndVerifyClientCert, overHTTP, log); err != nil {
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
	o := s.checkOptions(s.checkDoor.callers.desk)
	o.Certificates = c.Check.TLS.ClientCA != ""
	o.Unix = c.Listen.Check.Network == "unix"
	o.Refused = s.checkDoor.callers.refused
	if s.checkDoor.token != nil {
		o.Token = s.checkDoor.token.get
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

// checkOptions returns the options that the check API and the gateway's usage path share.
func (s *server) checkOptions(d *desk.Desk) checkapi.Options {
	c := s.config
	o := checkapi.Options{
		Desk:         d,
		HTTP:         httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: c.Trust.Proxies, TrustUnix: c.Trust.Unix}},
		EncodedSlash: c.Paths.EncodedSlash == config.Allow,
		Deadline:     c.Check.Deadline,
		Log:          s.log,
	}
	if s.rules != nil {
		o.Known = s.rules.knows
		o.Samples = s.rules.samples
	}
	return o
}

// maxUsage is how many clients get their usage at once: it costs them nothing, but asks the store
// once per limit.
const maxUsage = 64

// usageHandler shows clients of the gateway how much of their limits is used. It answers 404 if
// usage is off or there are no rules, and 503 beyond maxUsage clients.
func (s *server) usageHandler() http.Handler {
	if s.config.Usage == "" || s.gate == nil {
		return http.NotFoundHandler()
	}
	inner := checkapi.New(s.checkOptions(desk.New(s.gate))).Usage()
	places := make(chan struct{}, maxUsage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			inner.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many clients ask for their usage.", http.StatusServiceUnavailable)
		}
	})
}

// knows reports whether the rules in force have an identity of that name.
func (r *ruleSource) knows(name string) bool {
	return slices.Contains(r.live.Set().Identities(), name)
}

// samples returns requests that match the rules in force.
func (r *ruleSource) samples() (all []checkapi.Sample) {
	for _, s := range r.live.Set().Samples() {
		all = append(all, checkapi.Sample(s))
	}
	return all
}
