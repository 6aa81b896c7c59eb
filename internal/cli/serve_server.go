package cli

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/admin"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/demo"
	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/internal/gateway"
	"tidegate.dev/tidegate/internal/handover"
	"tidegate.dev/tidegate/internal/pressure"
	"tidegate.dev/tidegate/internal/queue"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/store/memory"
)

// server is everything that tidegate serve runs.
type server struct {
	config *config.Config
	env    Env
	heir   *handover.Heir
	demo   bool // it was asked for

	// Prepared: all that can be wrong.
	logs
	rules          *ruleSource // nil: nothing is limited
	signals        *pressure.Signals
	registry       *prometheus.Registry
	metrics        *telemetry.Metrics
	tls            *tls.Config // nil: plain HTTP
	token          string
	sample         *demo.Upstream // nil: there are others
	upstreams      []*url.URL
	clients, admin net.Listener

	// shared has the counters of a fleet; nil: they are of this process.
	shared *shared

	// Open, when the counters are ours.
	memory   *memory.Store  // nil: they are shared
	counters tidegate.Store // either
	gate     *tidegate.Gate // nil without rules
	gateway  atomic.Pointer[gateway.Gateway]
	stopping atomic.Bool
}

// prepare does everything that can fail, but for reading the counters.
func (s *server) prepare(doubts diag.List) (err error) {
	c := s.config
	if s.logs, err = openLogs(c.Log, s.env); err != nil {
		return err
	}
	s.signals = pressure.New()
	s.registry = prometheus.NewRegistry()
	s.metrics = telemetry.New(s.registry)
	if c.Store.Kind == config.InRedis {
		if s.shared, err = newShared(c.Store.Redis, s.instances, s.metrics, s.log); err != nil {
			return err
		}
	}
	if s.rules, err = s.loadRules(); err != nil {
		return err
	}
	if c.TLS.Cert != "" {
		certificate, err := loadCertificate(c.TLS.Cert, c.TLS.Key, s.log)
		if err != nil {
			return err
		}
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get}
		if c.TLS.ClientCA != "" {
			authorities, err := loadAuthorities(c.TLS, certificate.get, s.log)
			if err != nil {
				return err
			}
			s.tls.GetConfigForClient = authorities.forClient
		}
	}
	if s.token, err = readSecret(c.Admin.TokenFile, "the token of the admin listener"); err != nil {
		return err
	}
	if s.upstreams = c.Upstreams; s.demo || len(s.upstreams) == 0 {
		if s.sample, err = demo.Start(); err != nil {
			return err
		}
		s.upstreams = []*url.URL{s.sample.URL}
	}
	if s.clients, err = s.heir.Listen("gateway", c.Listen.Gateway.Network, c.Listen.Gateway.Address); err != nil {
		return err
	}
	if s.admin, err = s.heir.Listen("admin", c.Listen.Admin.Network, c.Listen.Admin.Address); err != nil {
		return err
	}
	s.warn(doubts)
	s.warn(s.doubts())
	return nil
}

// instances are how many the rules in force say share their limits; 0: they do not say.
func (s *server) instances() int {
	if s.rules == nil {
		return 0
	}
	return s.rules.live.Set().Instances()
}

// snapshot writes the counters to a file; nil: they are kept elsewhere.
func (s *server) snapshot() func(file string) error {
	if s.memory == nil {
		return nil
	}
	return s.memory.Snapshot
}

// open takes up the counters: those of a fleet, of a predecessor, those that were kept,
// or none.
func (s *server) open(handed string) {
	if s.shared != nil {
		s.shared.join()
		s.counters = s.shared.guard
		s.metrics.WatchShared(s.shared.stats)
	} else {
		s.memory = s.restore(handed)
		s.counters = s.memory
		s.metrics.WatchStore(
			func() telemetry.StoreStats { return telemetry.StoreStats(s.memory.Stats()) },
			func(l *tidegate.Limit) telemetry.StoreStats { return telemetry.StoreStats(s.memory.LimitStats(l)) })
	}
	line := queue.New(s.metrics.Store(s.counters))
	s.metrics.WatchQueue(line.Waiting)
	s.metrics.WatchSignals(pressure.Names, s.signals.Signal)
	if s.rules != nil {
		s.gate = tidegate.NewGate(s.metrics.Matcher(s.rules.Live()), line).Observe(s.metrics.Observe)
	}
}

func (s *server) restore(handed string) *memory.Store {
	o := memory.Config{MaxBytes: s.config.Store.Memory.Max}
	file := handed
	if file == "" {
		file = s.config.Store.Memory.Snapshot
	}
	if file == "" {
		return memory.Open(o)
	}
	store, err := memory.Restore(file, o)
	switch {
	case err == nil:
		s.log.Info("counters restored", "file", file, "keys", store.Stats().Keys)
		return store
	case handed == "" && errors.Is(err, fs.ErrNotExist):
		s.log.Info("no counters to restore", "file", file)
	default:
		s.log.Warn("the counters could not be restored: everybody starts afresh", "err", err)
	}
	return memory.Open(o)
}

// doors are what the process listens on.
func (s *server) doors() []handover.Door {
	return []handover.Door{
		{Name: "gateway", Listener: s.clients, Open: func() (handover.Server, error) {
			g, err := gateway.New(s.gatewayOptions())
			if err != nil {
				return nil, err
			}
			s.gateway.Store(g)
			return encrypted{g, s.tls}, nil
		}},
		{Name: "admin", Listener: s.admin, Last: true, Open: func() (handover.Server, error) {
			return &http.Server{
				Handler:           s.adminHandler(),
				ReadHeaderTimeout: 10 * time.Second,
				IdleTimeout:       time.Minute,
				ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			}, nil
		}},
	}
}

// encrypted is a gateway that speaks TLS, if it is to.
type encrypted struct {
	*gateway.Gateway
	config *tls.Config
}

func (e encrypted) Serve(l net.Listener) error { return e.Gateway.Serve(l, e.config) }

func (s *server) adminHandler() http.Handler {
	o := admin.Options{
		Token:   s.token,
		Store:   s.counters,
		Ready:   []func() error{s.ready},
		Load:    s.signals.Push,
		Metrics: telemetry.Handler(s.registry),
		Log:     s.log,
	}
	if s.rules != nil {
		o.Rules = s.rules
	}
	if s.shared != nil {
		o.Health = s.shared.health
	}
	return admin.New(o)
}

// ready says why requests should go elsewhere.
func (s *server) ready() error {
	if s.stopping.Load() {
		return errors.New("this process is about to end")
	}
	for _, u := range s.gateway.Load().Upstreams() {
		if u.Usable {
			return nil
		}
	}
	return errors.New("all upstreams are out of order")
}

func (s *server) close() {
	if s.rules != nil {
		s.rules.close()
	}
	if s.shared != nil {
		s.shared.close()
	}
	if s.sample != nil {
		s.sample.Close()
	}
	for _, l := range []net.Listener{s.clients, s.admin} {
		if l != nil {
			l.Close()
		}
	}
	s.logs.close()
}
