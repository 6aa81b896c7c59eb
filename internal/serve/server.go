package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// server is everything that tidegate serve runs.
type server struct {
	config         *config.Config
	stdout, stderr io.Writer
	heir           *handover.Heir
	demo           bool // it was asked for
	version        string
	doorWarnings   rules.DoorWarnings

	// Prepared: all that can be wrong.
	logs
	rules          *ruleSource // nil if nothing is limited
	signals        *pressure.Signals
	registry       *prometheus.Registry
	metrics        *telemetry.Metrics
	certificate    *certificate // nil for plain HTTP
	authorities    *authorities // of clients; nil if their certificates are not asked for
	adminCert      *certificate // nil for plain HTTP
	token          string
	sample         *demo.Upstream // nil if there are others
	upstreams      []*url.URL
	clients, admin net.Listener // clients is nil without a gateway
	checkDoor      checkDoor
	respDoor       respDoor

	// shared has the counters of a fleet; nil if they are of this process.
	shared *shared

	// Open, when the counters are ours.
	memory      *memory.Store  // nil: they are shared
	snapshotter *snapshotter   // of them; nil: the same
	shortage    *shortage      // of their memory; nil: the same
	shares      *split.Store   // counts in memory; nil: the same
	counters    tidegate.Store // either
	limited     tidegate.Store // the same, with a line to wait in
	gate        *tidegate.Gate // nil without rules
	gateway     atomic.Pointer[gateway.Gateway]
	stopping    atomic.Bool
}

// prepare does everything that can fail, except reading the counters.
func (s *server) prepare(doubts diag.List) (err error) {
	c := s.config
	if s.logs, err = openLogs(c.Log, s.stdout, s.stderr); err != nil {
		return err
	}
	s.doorWarnings.Doors = doorsOf(c.Listen)
	s.signals = pressure.New()
	s.registry = prometheus.NewRegistry()
	s.metrics = telemetry.New(s.registry, c.Store.Kind)
	s.metrics.WatchLogs(s.logs.stats)
	if c.Store.Kind == config.InRedis {
		if s.shared, err = newShared(c.Store.Redis, fleet.Options{Instances: s.instances, Version: s.version, Rules: s.revision}, s.metrics, s.log); err != nil {
			return err
		}
	}
	if s.rules, err = s.loadRules(); err != nil {
		return err
	}
	if s.certificate, err = loadCertificate("the gateway", config.KeyPair{Cert: c.TLS.Cert, Key: c.TLS.Key}, s.log); err != nil {
		return err
	}
	if c.TLS.ClientCA != "" {
		auth := tls.VerifyClientCertIfGiven
		if c.TLS.ClientAuth == config.Require {
			auth = tls.RequireAndVerifyClientCert
		}
		if s.authorities, err = loadAuthorities(c.TLS.ClientCA, auth, s.certificate.get, s.log); err != nil {
			return err
		}
	}
	if s.adminCert, err = loadCertificate("the admin listener", c.Admin.TLS, s.log); err != nil {
		return err
	}
	if s.token, err = readToken(c.Admin.TokenFile, "the admin listener"); err != nil {
		return err
	}
	if err = s.checkDoor.prepare(c, s.log); err != nil {
		return err
	}
	if err = s.respDoor.prepare(c, s.log); err != nil {
		return err
	}
	if s.upstreams = c.Upstreams; s.demo || len(s.upstreams) == 0 && c.Listen.Gateway.Open() {
		if s.sample, err = demo.Start(); err != nil {
			return err
		}
		s.upstreams = []*url.URL{s.sample.URL}
	}
	for _, l := range []struct {
		name string
		at   config.Address
		to   *net.Listener
	}{
		{"gateway", c.Listen.Gateway, &s.clients},
		{"check", c.Listen.Check, &s.checkDoor.listener},
		{"resp", c.Listen.RESP, &s.respDoor.listener},
		{"admin", c.Listen.Admin, &s.admin},
	} {
		if !l.at.Open() {
			continue
		}
		if *l.to, err = s.heir.Listen(l.name, l.at.Network, l.at.Address); err != nil {
			return err
		}
	}
	s.warn(doubts)
	s.warn(s.doubts())
	return nil
}

// instances returns how many instances share the limits, as the rules in force say; 0 if they
// do not.
func (s *server) instances() int {
	if s.rules == nil {
		return 0
	}
	return s.rules.live.Set().Instances()
}

// revision is the hash of the rules in force; "" if there are none.
func (s *server) revision() string {
	if s.rules == nil {
		return ""
	}
	return s.rules.Status().Hash
}

// members is instances for counters that are not shared. Nobody knows the rank of this one.
func (s *server) members() (instances, rank int) { return s.instances(), -1 }

// snapshot returns what writes the counters to a file, or with Redis the local counters of an
// outage.
func (s *server) snapshot() func(file string) error {
	if s.shared != nil {
		return func(file string) error { return errors.Join(s.shared.HandOver(file), s.remember(file)) }
	}
	return s.snapshotter.handOver
}

// kept is the file that counters are written to when the process ends; "" if they are not.
func (s *server) kept() string {
	if s.shared != nil {
		return ""
	}
	return s.config.Store.Memory.Snapshot
}

// resumed is called when a successor did not take over.
func (s *server) resumed() {
	if s.snapshotter != nil {
		s.snapshotter.resume()
	}
	if s.shared != nil {
		s.shared.Resume()
	}
}

// open opens the counters: those of a fleet, of a predecessor, of a snapshot, or none.
func (s *server) open(handed string) {
	if s.shared != nil {
		if handed != "" {
			if err := s.shared.TakeOver(handed); err != nil {
				s.log.Warn("what the predecessor counted while Redis is away is lost", "err", err)
			}
		}
		s.shared.Join()
		s.counters, s.limited = s.shared, s.shared
		s.metrics.WatchShared(s.shared.stats)
		s.metrics.WatchQueue(s.shared.Waiting)
	} else {
		s.memory = s.restore(handed)
		s.counters = s.memory
		s.shares = split.New(chain.Adapt(s.memory), split.Options{Members: s.members, Local: s.memory, Whole: true})
		s.snapshotter = newSnapshotter(s.memory, s.config.Store.Memory, s.remember, s.log)
		s.shortage = watchShortage(s.memory.Stats, s.config.Store.Memory.Max, s.log)
		s.metrics.WatchStore(
			func() telemetry.StoreStats { return telemetry.StoreStats(s.memory.Stats()) },
			func(l *tidegate.Limit) telemetry.StoreStats { return telemetry.StoreStats(s.memory.LimitStats(l)) })
		queued := queue.New(s.metrics.Store(s.shares))
		s.limited = queued
		s.metrics.WatchQueue(queued.Waiting)
	}
	if handed == "" {
		handed = s.kept()
	}
	s.recall(handed)
	s.metrics.WatchSignals(pressure.Names, s.signals.Signal)
	if s.rules != nil {
		s.gate = tidegate.NewGate(s.metrics.Matcher(s.rules.Live()), s.limited).Observe(s.metrics.Observe)
	}
	if s.checkDoor.listener != nil {
		s.checkDoor.callers = s.newCallers("check")
	}
	if s.respDoor.listener != nil {
		s.respDoor.callers = s.newCallers("resp")
	}
}

func (s *server) adminHandler() http.Handler {
	o := admin.Options{
		Token: s.token,
		Store: s.counters,
		Ready: []func() error{s.ready},
		Load:  s.signals.Push, LoadLasts: pressure.LoadLasts,
		Metrics: telemetry.Handler(s.registry),
		Log:     s.log,
	}
	if s.rules != nil {
		o.Rules = s.rules
	}
	if s.shares != nil {
		o.Store = s.shares // what is used of a limit that is split is of its share
	}
	switch {
	case s.shared != nil:
		o.Health = s.shared.health
		o.Fleet = func(ctx context.Context) (admin.Fleet, error) { return ListFleet(ctx, s.shared.Store) }
	case s.shortage != nil:
		o.Health = s.shortage.health
	}
	return admin.New(o)
}

// ready returns why requests should go elsewhere, or nil.
func (s *server) ready() error {
	if s.stopping.Load() {
		return errors.New("this process is about to end")
	}
	g := s.gateway.Load()
	if g == nil {
		return nil
	}
	for _, u := range g.Upstreams() {
		if u.Usable {
			return nil
		}
	}
	return errors.New("all upstreams are out of order")
}

// cutOff is how long to wait until requests that were cut off are in the access log.
const cutOff = time.Second

// awaitCut returns when no request is in flight, or soon.
func (s *server) awaitCut() {
	g := s.gateway.Load()
	for end := time.Now().Add(cutOff); g != nil && g.InFlight() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (s *server) close() {
	s.awaitCut()
	if s.shortage != nil {
		s.shortage.close()
	}
	if s.snapshotter != nil {
		s.snapshotter.close()
	}
	if s.rules != nil {
		s.rules.close()
	}
	if s.shared != nil {
		_ = s.shared.Close()
	}
	if s.sample != nil {
		s.sample.Close()
	}
	for _, l := range []net.Listener{s.clients, s.checkDoor.listener, s.respDoor.listener, s.admin} {
		if l != nil {
			l.Close()
		}
	}
	s.logs.close()
}
