package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
)

// graceOfHeld is how long idle connections are kept at shutdown if systemd holds the socket: new
// connections wait there for the next process.
const graceOfHeld = 200 * time.Millisecond

// gatewayFront is the reverse proxy: its listener and its upstreams.
type gatewayFront struct {
	listener  net.Listener // nil means it is not open
	tls       listenerTLS
	upstreams []*url.URL
	current   atomic.Pointer[gateway.Gateway]
	opened    []*gateway.Gateway // current and those before it: if an upgrade fails, a new one is opened
}

// loadTLS reads the gateway's certificate, and the authorities that sign those of clients.
func (f *gatewayFront) loadTLS(c config.TLS, log *slog.Logger) (err error) {
	auth := tls.VerifyClientCertIfGiven
	if c.ClientAuth == config.Require {
		auth = tls.RequireAndVerifyClientCert
	}
	f.tls, err = loadListenerTLS("the gateway", config.DoorTLS{KeyPair: config.KeyPair{Cert: c.Cert, Key: c.Key}, ClientCA: c.ClientCA}, auth, overHTTP, log)
	return err
}

// gatewayOptions returns the settings as options of the gateway.
func (s *server) gatewayOptions() gateway.Options {
	c := s.config
	var reads func(string) bool
	if s.rules != nil {
		reads = func(name string) bool { return s.rules.live.Set().ReadsHeader(name) }
	}
	return gateway.Options{
		OwnPath:     c.Usage,
		Own:         s.usageHandler(),
		Gate:        s.gate,
		Slip:        s.slip,
		Deferrer:    s.deferrer(),
		DeferPath:   c.Defer.Path + "/",
		ReadsHeader: reads,
		HTTP:        httplimit.Options{ClientIP: httplimit.ClientIP{Trusted: c.Trust.Proxies, TrustUnix: c.Trust.Unix}},
		Upstreams:   s.gateway.upstreams,
		Limits: gateway.Limits{
			HeaderBytes: int(c.Limits.Header),
			HeaderLines: c.Limits.HeaderLines,
			URI:         int(c.Limits.URI),
			Body:        c.Limits.Body,
			ReadHeader:  c.Limits.ReadHeader,
			Read:        c.Limits.Read,
			Write:       c.Limits.Write,
			Idle:        c.Limits.Idle,
			Stall:       orAny(c.Limits.Stall),
			Tunnel:      orAny(c.Limits.Tunnel),
			Upstream:    orAny(c.Limits.Upstream),
			Requests:    c.Limits.Requests,
			Connections: c.Limits.Connections,
		},
		Transport: gateway.Transport{Idle: orAny(c.KeepAlive.Idle), IdleConns: c.KeepAlive.Connections},
		Paths: gateway.Paths{
			EncodedSlash: c.Paths.EncodedSlash == config.Allow,
			CleanDots:    c.Paths.DotSegments == config.Clean,
			MergeSlashes: c.Paths.Empty == config.Merge,
		},
		Health: gateway.Health{
			Path:           c.Health.Path,
			Every:          c.Health.Every,
			Timeout:        c.Health.Timeout,
			UnhealthyAfter: c.Health.UnhealthyAfter,
		},
		IdleGrace: s.idleGrace(),
		Store:     c.Store.Kind,
		AccessLog: s.requests,
		Log:       s.log,
		Observer:  observer{s.metrics, s.signals},
		Tracer:    s.tracer(),
		Inflight:  observer{s.metrics, s.signals}.inflight,
		Usable:    func(upstream string, usable bool) { s.metrics.Ejected(upstream, !usable) },
	}
}

// idleGrace returns how long idle connections are kept at shutdown; 0 means the listener's default.
func (s *server) idleGrace() time.Duration {
	if s.heir.Held() {
		return graceOfHeld
	}
	return 0
}

// orAny converts a time of the configuration, where 0 means no limit, for the gateway, where 0
// means its default and a negative time no limit.
func orAny(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// observer passes events of the gateway to metrics and signals.
type observer struct {
	metrics *telemetry.Metrics
	signals *pressure.Signals
}

// inflight records that delta more requests are at the upstreams. Each counts as unanswered until
// its first try is over; see Tried.
func (o observer) inflight(delta int) {
	o.metrics.Inflight(delta)
	o.signals.Inflight(delta)
	if delta > 0 {
		o.signals.Unanswered(delta)
	}
}

// Tried implements [gateway.Observer].
func (o observer) Tried(t gateway.Try) {
	o.metrics.UpstreamDone(t.Upstream, t.Status, t.Took, t.Err)
	if t.Retry {
		o.metrics.Retry()
	} else {
		o.signals.Unanswered(-1)
	}
	if errors.Is(t.Err, context.Canceled) {
		o.signals.GivenUp(t.Took)
	} else {
		o.signals.Answered(t.Took)
	}
}

// Done implements [gateway.Observer].
func (o observer) Done(r *accesslog.Record) {
	if r.Wait > 0 {
		o.metrics.Waited(r.Wait)
	}
}
