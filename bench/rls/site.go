package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/envoyproxy"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/served"
)

// site is where the race is run: what was started, and who takes part.
type site struct {
	dir      string
	stops    []func()
	versions []string
	redis    *daemon.Server
	entrants entrants
	deciding []*entrant // those that count; the others answer
}

// openSite starts everything that the race only needs, or all of them if it is "". A binary that
// is given is raced as it is.
func openSite(ctx context.Context, binary, only string) (_ *site, err error) {
	s := &site{}
	if s.dir, err = os.MkdirTemp("", "tidegate-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if binary == "" {
		rig.Progress("building tidegate")
		if binary, err = served.Build(ctx, s.dir); err != nil {
			return nil, err
		}
	}
	if only == "" || only == memory || only == memory20 {
		if err := s.openMemory(ctx, binary, only); err != nil {
			return nil, err
		}
	}
	if only == "" || only == onRedis {
		if err := s.openRedis(ctx, binary); err != nil {
			return nil, err
		}
	}
	if len(s.entrants) == 0 {
		return nil, fmt.Errorf("-only %s: there is no such race", only)
	}
	return s, s.probe(ctx)
}

// close ends everything that was started, the last first.
func (s *site) close() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
	_ = os.RemoveAll(s.dir)
}

// openMemory starts the server that decides nothing, and Tidegate that counts in memory. The
// same two are asked with one descriptor and with twenty.
func (s *site) openMemory(ctx context.Context, binary, only string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it again: %w", err)
	}
	dir, address, err := daemon.Folder(s.dir, "noop")
	if err != nil {
		return err
	}
	bare, err := daemon.Start("the server that decides nothing", dir, address, nil, self, childWord, "noop", address)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, bare.Stop)
	if err := bare.Await(ctx, func(ctx context.Context) error { return ask(ctx, address, 1) }); err != nil {
		return err
	}
	ours, pid, err := s.startTidegate(ctx, binary, "memory")
	if err != nil {
		return err
	}
	for _, r := range []struct {
		race, size  string
		descriptors int
	}{{memory, "1 descriptor", 1}, {memory20, fmt.Sprint(most, " descriptors"), most}} {
		if only != "" && only != r.race {
			continue
		}
		rival := &entrant{name: "grpc-go that decides nothing, " + r.size, race: r.race, address: address, pid: bare.PID, descriptors: r.descriptors}
		e := &entrant{name: "Tidegate, memory, " + r.size, race: r.race, address: ours, pid: pid, descriptors: r.descriptors, rival: rival}
		s.entrants = append(s.entrants, rival, e)
		s.deciding = append(s.deciding, e)
	}
	return nil
}

// openRedis starts Tidegate and envoyproxy/ratelimit on one Redis.
func (s *site) openRedis(ctx context.Context, binary string) error {
	rig.Progress("building envoyproxy/ratelimit: a minute the first time")
	program, err := envoyproxy.Build(ctx, s.dir, envoyproxy.Service)
	if err != nil {
		return err
	}
	s.versions = append(s.versions, envoyproxy.Version(ctx, program))
	if err := s.startRedis(ctx); err != nil {
		return err
	}
	dir, _, err := daemon.Folder(s.dir, "envoyproxy")
	if err != nil {
		return err
	}
	theirs, err := envoyproxy.Start(program, dir, configText(), s.redis.Address)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, theirs.Stop)
	if err := theirs.Await(ctx, func(ctx context.Context) error { return ask(ctx, theirs.Address, 1) }); err != nil {
		return err
	}
	ours, pid, err := s.startTidegate(ctx, binary, "redis", "--store.redis=redis://"+s.redis.Address)
	if err != nil {
		return err
	}
	rival := &entrant{name: "envoyproxy/ratelimit, Redis, 1 descriptor", race: onRedis, address: theirs.Address, pid: theirs.PID, descriptors: 1}
	e := &entrant{name: "Tidegate, Redis, 1 descriptor", race: onRedis, address: ours, pid: pid, descriptors: 1, rival: rival}
	s.entrants = append(s.entrants, rival, e)
	s.deciding = append(s.deciding, rival, e)
	return nil
}

// startRedis starts the one that both count in.
func (s *site) startRedis(ctx context.Context) error {
	dir, address, err := daemon.Folder(s.dir, "redis-server")
	if err != nil {
		return err
	}
	if s.redis, err = daemon.StartRedis(ctx, dir, address); err != nil {
		return err
	}
	s.stops = append(s.stops, s.redis.Stop)
	s.versions = append(s.versions, daemon.RedisVersion(ctx))
	return nil
}

// startTidegate leaves everything as it is by default, but for the access log, and returns where
// it can be asked.
func (s *site) startTidegate(ctx context.Context, binary, name string, flags ...string) (address string, pid int, err error) {
	dir, address, err := daemon.Folder(s.dir, name)
	if err != nil {
		return "", 0, err
	}
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(configText()), 0o600); err != nil {
		return "", 0, err
	}
	g, err := served.Start(ctx, binary, append([]string{"--demo", "--rules=" + rules, "--listen.rls=" + address}, flags...)...)
	if err != nil {
		return "", 0, err
	}
	s.stops = append(s.stops, g.Stop)
	return address, g.PID, nil
}
