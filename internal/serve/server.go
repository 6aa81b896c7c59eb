package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/split"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/front/dashboard"
	"tidegate.dev/tidegate/internal/front/gateway"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/serve/handover"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
	"tidegate.dev/tidegate/internal/telemetry/traces"
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
	trust          rules.Trust // whose word rules take
	rules          *ruleSource // nil if nothing is limited
	signals        *pressure.Signals
	registry       *prometheus.Registry
	metrics        *telemetry.Metrics
	traces         *traces.Tracer // nil if nobody gets any
	refusals       *refusals      // nil if none are logged
	offenders      *offenders.Offenders
	certificate    *certificate // nil for plain HTTP
	authorities    *authorities // of clients; nil if their certificates are not asked for
	operators      operators
	slips          slips
	fit            *fit.Fit
	page           *dashboard.Dashboard // nil before the admin listener is open
	audit          audit
	board          *board.Board // what operators order
	past           past         // rules that were in force
	lately         recorder
	sample         *demo.Upstream // nil if there are others
	endTraffic     func()         // of the demo; nil if there is none
	upstreams      []*url.URL
	clients, admin net.Listener // clients is nil without a gateway
	checkDoor      checkDoor
	respDoor       respDoor
	rlsDoor        rlsDoor
	plane          plane // sends rules
	deferred       deferred
	following      following
	showing        sync.Mutex

	// shared has the counters of a fleet; nil if they are of this process.
	shared       *shared
	formerShards formerShards

	// Open, when the counters are ours.
	memory      *memory.Store  // nil means they are shared
	snapshotter *snapshotter   // of them; nil means the same
	shortage    *shortage      // of their memory; nil means the same
	shares      *split.Store   // counts in memory; nil means the same
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
	s.offenders = offenders.New(offenders.Options{Subject: s.subjectOf, Node: s.nodeName()})
	s.metrics.Tell(s.offenders)
	s.fit = fit.New(time.Now())
	s.refusals = newRefusals(c, s.log)
	if s.traces, err = s.openTraces(c.Telemetry.OTLP); err != nil {
		return err
	}
	s.formerShards.since = time.Now()
	if c.Store.Kind == config.InRedis {
		if s.shared, err = newShared(c.Store.Redis, fleet.Options{
			Instances: s.instances, Version: s.version, Rules: s.revision, StateFile: c.Admin.State, OnMeasure: s.doesNotHold, Log: s.log,
		}, s.metrics, s.log); err != nil {
			return err
		}
	}
	if err = s.openBoard(); err != nil {
		return err
	}
	if err = s.openAudit(); err != nil {
		return err
	}
	s.openHistory()
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
	if err = s.loadOperators(); err != nil {
		return err
	}
	if err = s.prepareDeferred(); err != nil {
		return err
	}
	if err = s.slips.open(s, c.Slips.KeyFile); err != nil {
		return err
	}
	if err = s.checkDoor.prepare(c, s.log); err != nil {
		return err
	}
	if err = s.respDoor.prepare(c, s.log); err != nil {
		return err
	}
	if err = s.rlsDoor.prepare(c, s.log); err != nil {
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
		{"rls", c.Listen.RLS, &s.rlsDoor.listener},
		{"rls_http", c.Listen.RLSHTTP, &s.rlsDoor.http},
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
		return func(file string) error {
			return errors.Join(s.deferred.close(), s.shared.HandOver(file), s.remember(file), s.past.handOver(file))
		}
	}
	return func(file string) error {
		if file == s.kept() { // the end: admin.state keeps what operators have ordered
			return s.snapshotter.handOver(file)
		}
		return errors.Join(s.deferred.close(), s.snapshotter.handOver(file), s.board.HandOver(file+ofBoard), s.past.handOver(file))
	}
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
	if s.past.History != nil {
		s.past.Resume()
	}
	if s.snapshotter != nil {
		s.snapshotter.resume()
		s.board.Resume()
	}
	if s.shared != nil {
		s.shared.Resume()
	}
	s.openDeferred(true)
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
		queued := queue.New(s.shares).Time(s.metrics.Takes())
		s.limited = queued
		s.metrics.WatchQueue(queued.Waiting)
	}
	handedOver := handed
	if handed == "" {
		handed = s.kept()
	}
	s.recall(handed)
	s.followBoard(handedOver)
	if err := s.past.takeOver(handedOver); err != nil {
		s.log.Warn("the history of rules of the predecessor is lost", "err", err)
	}
	s.metrics.WatchSignals(pressure.Names, s.signals.Signal)
	s.signals.Serving(s.busyWith)
	if s.rules != nil {
		s.metrics.WatchShedding(s.shedding)
		s.gate = tidegate.NewGate(s.metrics.Matcher(s.rules.Live()), s.behind(s.limited)).Observe(s.observe)
	}
	s.openDeferred(handedOver != "")
	s.lately.start(s.metrics.Totals)
	if s.checkDoor.listener != nil {
		s.checkDoor.callers = s.newCallers("check")
	}
	if s.respDoor.listener != nil {
		s.respDoor.callers = s.newCallers("resp")
	}
	if s.rlsDoor.listener != nil {
		s.openRLSCounts()
	}
}

func (s *server) adminHandler() http.Handler {
	o := admin.Options{
		Audit: &s.audit,
		Board: s.board, Offenders: s.offenders.Snapshot,
		Store: s.counters,
		Ready: []func() error{s.ready},
		Load:  s.signals.Push, LoadLasts: pressure.LoadLasts,
		Metrics:  telemetry.Handler(s.registry),
		Series:   s.series,
		OpenSlip: func(text string) (slip.Slip, error) { return s.slips.sealer().Open(text) },
		Log:      s.log,
	}
	s.operators.options(s.config.Admin, &o)
	if s.rules != nil {
		o.Rules, o.Compile, o.InForce = s.rules, s.compile, s.inForce
		o.CompileFiles, o.KeysOf, o.SubjectOf = s.compileFiles, s.offenders.Keys, s.subjectOf
		o.Apply = &applier{server: s}
		if s.past.History != nil {
			o.History = s.past.History
		}
		if s.rules.Watcher != nil {
			o.Reload = s.rules.Reload
		}
	}
	if f := s.openFeed(); f != nil {
		o.Feed, o.Followers = f, s.following.followers
	}
	if s.defers() {
		o.Deferred = deferredAdmin{&s.deferred}
	}
	if s.plane.Watcher != nil {
		o.Plane = func() any { return s.plane.Status() }
	}
	o.Warnings = func() []string {
		return slices.Concat(s.planeWarnings(), s.formerShards.warnings(len(s.config.Store.Redis.Was)), s.deferred.warnings())
	}
	if s.shares != nil {
		o.Store = s.shares // what is used of a limit that is split is of its share
	}
	if s.memory != nil {
		o.Survey = s.memory
	}
	switch {
	case s.shared != nil:
		o.Survey = s.shared.Store
		o.Health = s.shared.health
		o.Fleet = func(ctx context.Context) (admin.Fleet, error) { return ListFleet(ctx, s.shared.Store) }
	case s.shortage != nil:
		o.Health = s.shortage.health
	}
	return s.openPage(o)
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
	if s.endTraffic != nil {
		s.endTraffic()
	}
	s.awaitCut()
	if err := s.deferred.close(); err != nil {
		s.log.Warn("deferred requests were not closed as they should be", "err", err)
	}
	s.closeTraces()
	s.rlsDoor.close()
	if s.shortage != nil {
		s.shortage.close()
	}
	if s.snapshotter != nil {
		s.snapshotter.close()
	}
	if s.page != nil {
		s.page.Close()
	}
	s.lately.close()
	if s.board != nil {
		s.board.Close()
	}
	s.plane.close()
	if s.rules != nil {
		s.rules.close()
	}
	s.past.close()
	if s.audit.Log != nil {
		if err := s.audit.Close(); err != nil {
			s.log.Warn("the audit log was not closed as it should be", "err", err)
		}
	}
	if s.shared != nil {
		_ = s.shared.Close()
	}
	if s.sample != nil {
		s.sample.Close()
	}
	for _, l := range []net.Listener{s.clients, s.checkDoor.listener, s.respDoor.listener, s.rlsDoor.listener, s.rlsDoor.http, s.admin} {
		if l != nil {
			l.Close()
		}
	}
	if s.offenders != nil {
		s.offenders.Close()
	}
	s.logs.close()
}
