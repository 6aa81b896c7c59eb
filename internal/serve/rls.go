package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/front/rlqs"
	"tidegate.dev/tidegate/internal/front/rls"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/rules/envoy"
)

// rlsDoor has the listeners for Envoy, and what their servers need.
type rlsDoor struct {
	listener net.Listener // of gRPC; nil means it is not open
	http     net.Listener // nil means the gRPC listener
	tls      listenerTLS
	callers  *callers
	stats    *telemetry.EnvoyProxy // nil means that only our own metric names are used
	compare  *rls.Compare          // nil means that there is no other service to compare with
	compared atomic.Pointer[telemetry.Compared]
	server   *rls.Server                 // the newest, which may not serve yet
	quotas   atomic.Pointer[rlqs.Server] // the newest server of the quota service
	quota    *callers                    // the callers of the quota service
	// entryNames caches what the rules of the domains count by; see countedBy.
	entryNames atomic.Pointer[entryNames]
}

func (d *rlsDoor) prepare(c *config.Config, log *slog.Logger) (err error) {
	if !c.Listen.RLS.Open() {
		return nil
	}
	if d.tls, err = loadListenerTLS("the rate limit service", c.RLS.TLS, tls.RequireAndVerifyClientCert, overHTTP2, log); err != nil || c.RLS.Compare == "" {
		return err
	}
	d.compare, err = rls.NewCompare(rls.CompareOptions{Address: c.RLS.Compare, Log: log, Told: func(domain, rule string, agree bool) {
		if told := d.compared.Load(); told != nil {
			told.Told(domain, rule, agree)
		}
	}})
	return err
}

func (d *rlsDoor) close() {
	if d.compare != nil {
		_ = d.compare.Close()
	}
}

// openRLS returns a server for Envoy.
func (s *server) openRLS() (handover.Server, error) {
	q := s.newRLQS()
	r := s.newRLS(q)
	s.rlsDoor.server = r
	return &rlsServer{
		Server: r,
		quotas: q,
		conns: listen.NewGroup(listen.Options{
			Limits: listen.Limits{Connections: s.config.Limits.Connections, Surplus: -1, Stall: orAny(s.config.Limits.Stall)}, Log: s.log,
		}),
		door:     &s.rlsDoor,
		stopping: s.stopping.Load,
	}, nil
}

// newRLS returns the rate limit service, with q on the same listener.
func (s *server) newRLS(q *rlqs.Server) *rls.Server {
	c := s.config
	o := rls.Options{
		Domains:          s.domains,
		Desk:             s.rlsDoor.callers.desk,
		Store:            s.limited,
		Paths:            strict.Paths{EncodedSlash: c.Paths.EncodedSlash == config.Allow},
		Deadline:         c.RLS.Deadline,
		MaxConnectionAge: orAny(c.RLS.MaxConnectionAge),
		Headers:          rls.Headers(c.RLS.Headers),
		Shadow:           c.RLS.Shadow,
		Compare:          s.rlsDoor.compare,
		Register:         q.Register,
		Counted:          s.rlsDoor.callers.count,
		Log:              s.log,
	}
	switch c.RLS.DynamicMetadata {
	case config.OfRequest:
		o.Metadata = rls.MetadataOfRequest
	case config.Off:
		o.Metadata = rls.NoMetadata
	}
	if s.shared != nil {
		o.Far = true
	} else {
		o.Near = s.local.memory
	}
	if s.rlsDoor.stats != nil {
		o.Stats = rlsStats{s.rlsDoor.stats}
	}
	o.Shadowed = s.rlsDoor.callers.shadowed
	o.Each = s.offended
	o.Slip = s.slip
	if log := s.rlsDoor.callers.log; log != nil {
		o.Answered = func(key string, d *tidegate.Decision) {
			log(nil, []tidegate.Check{{Key: key, Limit: d.Limit}}, *d)
		}
	}
	return rls.New(o)
}

// rlsStats counts under the metric names of envoyproxy/ratelimit.
type rlsStats struct{ *telemetry.EnvoyProxy }

// Hits implements [rls.Stats].
func (r rlsStats) Hits(domain, key string, h rls.Hits) {
	r.EnvoyProxy.Hits(domain, key, telemetry.EnvoyHits(h))
}

// openRLSCounts makes the callers of the rate limit and quota services, and the metrics about them
// and about the service that they are compared with.
func (s *server) openRLSCounts() {
	d := &s.rlsDoor
	d.callers = s.newCallers("rls")
	d.quota = s.newCallers("rlqs")
	s.metrics.WatchQuotas(func() telemetry.QuotaStats {
		if q := d.quotas.Load(); q != nil {
			return telemetry.QuotaStats(q.Stats())
		}
		return telemetry.QuotaStats{}
	})
	if s.config.RLS.Metrics == config.EnvoyProxy {
		d.stats = s.metrics.NewEnvoyProxy(func() (ok, failed int) {
			if s.rules != nil {
				st := s.rules.Status()
				ok, failed = 1+st.Reloads, st.Failed
			}
			if s.plane.Watcher != nil {
				st := s.plane.Status()
				ok, failed = ok+st.Updates, failed+st.Rejected
			}
			return ok, failed
		})
	}
	if d.compare != nil {
		d.compared.Store(s.metrics.NewCompared(d.compare.Stats))
	}
}

// domains returns the domains of the rules in force.
func (s *server) domains() *envoy.Set {
	return s.plane.join(s.fileDomains())
}

// fileDomains returns the domains of rule files.
func (s *server) fileDomains() *envoy.Set {
	if s.rules == nil {
		return nil
	}
	return s.rules.live.Set().Domains()
}

// domainRules returns the rules of all domains.
func domainRules(set *envoy.Set) (all []*envoy.Rule) {
	for _, name := range set.Domains() {
		all = append(all, set.Domain(name).Rules()...)
	}
	return all
}

// rlsServer limits connections.
type rlsServer struct {
	*rls.Server
	quotas   *rlqs.Server
	conns    *listen.Group
	door     *rlsDoor
	stopping func() bool // this process ends without a successor
}

// lastChecks is how long health checks get NOT_SERVING before clients are told to disconnect.
const lastChecks = 500 * time.Millisecond

// Shutdown implements [handover.Server]. Health checks get NOT_SERVING only if there is no
// successor to answer them.
func (r *rlsServer) Shutdown(ctx context.Context) error {
	_ = r.quotas.Close() // its error is always nil
	if r.stopping() {
		r.Drain()
		select {
		case <-time.After(lastChecks):
		case <-ctx.Done():
		}
	}
	return r.Server.Shutdown(ctx)
}

// Close implements [handover.Server].
func (r *rlsServer) Close() error {
	_ = r.quotas.Close()
	return r.Server.Close()
}

// Serve implements [handover.Server].
func (r *rlsServer) Serve(l net.Listener) error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	return r.Server.Serve(r.conns.Listen(ctx, l, r.door.tls.config()))
}

// openRLSHTTP returns a server for the HTTP side of the rate limit service.
func (s *server) openRLSHTTP() (handover.Server, error) {
	l := s.config.Limits
	return tlsServer{listen.NewServer(listen.ServerOptions{
		Handler: s.rlsDoor.server.HTTP(),
		Limits: listen.HTTPLimits{
			Limits:      listen.Limits{Connections: l.Connections, Stall: orAny(l.Stall)},
			HeaderBytes: int(l.Header),
			ReadHeader:  l.ReadHeader,
			Read:        min(orLong(l.Read), 30*time.Second),
			Write:       l.Write,
			Idle:        l.Idle,
		},
		IdleGrace: s.idleGrace(),
		Log:       s.log,
	}), nil}, nil
}

// orLong returns d, or a very long time if d is 0, which means no limit.
func orLong(d time.Duration) time.Duration {
	if d == 0 {
		return aYear
	}
	return d
}
