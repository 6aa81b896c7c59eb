package serve

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/dev/demo"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/fit"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/internal/telemetry/pressure"
)

// prepare does everything that can fail before there are counters, except followPlane. doubts are
// the warnings about the configuration. When ctx ends, it stops waiting for rules.
func (s *server) prepare(ctx context.Context, doubts diag.List) (err error) {
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
	if s.rules, err = s.loadRules(ctx); err != nil {
		return err
	}
	if err = s.gateway.loadTLS(c.TLS, s.log); err != nil {
		return err
	}
	if err = s.admin.prepare(c.Admin, s.log); err != nil {
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
	if s.gateway.upstreams = c.Upstreams; s.example.asked || len(s.gateway.upstreams) == 0 && c.Listen.Gateway.Open() {
		if s.example.upstream, err = demo.Start(); err != nil {
			return err
		}
		s.gateway.upstreams = []*url.URL{s.example.upstream.URL}
	}
	if err = s.listen(); err != nil {
		return err
	}
	s.warn(doubts)
	s.warn(s.doubts())
	return nil
}

// listen opens the listeners, or takes them from a predecessor or from systemd.
func (s *server) listen() (err error) {
	c := s.config.Listen
	for _, l := range []struct {
		name string
		at   config.Address
		to   *net.Listener
	}{
		{"gateway", c.Gateway, &s.gateway.listener},
		{"check", c.Check, &s.checkDoor.listener},
		{"resp", c.RESP, &s.respDoor.listener},
		{"rls", c.RLS, &s.rlsDoor.listener},
		{"rls_http", c.RLSHTTP, &s.rlsDoor.http},
		{"admin", c.Admin, &s.admin.listener},
	} {
		if !l.at.Open() {
			continue
		}
		if *l.to, err = s.heir.Listen(l.name, l.at.Network, l.at.Address); err != nil {
			return err
		}
		if err = s.checkProtected(l.name, (*l.to).Addr()); err != nil {
			return err
		}
	}
	return nil
}

// checkProtected rejects a socket for Redis clients that other machines can reach, if neither a password
// nor a client certificate is required. The configuration cannot check the address of a systemd
// socket; the other listeners check each caller.
func (s *server) checkProtected(name string, at net.Addr) error {
	tcp, ok := at.(*net.TCPAddr)
	open := s.config.RESP.UsersFile == "" && s.config.RESP.TLS.ClientCA == ""
	if name != "resp" || !open || !ok || tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("the socket %s of the RESP listener can be reached from other machines, and asks for no password: name a file with a password in resp.users_file", at)
}
