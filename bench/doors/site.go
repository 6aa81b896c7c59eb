package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/served"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// site is where the race is run: what was started, and the load generators.
type site struct {
	dir      string
	redis    *daemon.Server
	nginx    *daemon.Server
	tidegate *served.Gateway
	resp     string // addresses of its doors
	check    string
	get      wrk.Program // load generators
	post     wrk.Program
	auth     wrk.Program
	versions []string
}

// openSite starts everything. A binary that is given is raced as it is.
func openSite(ctx context.Context, binary string) (_ *site, err error) {
	s := &site{}
	if s.dir, err = os.MkdirTemp("", "tidegate-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, start := range []func(context.Context) error{s.findWrk, s.startRedis, s.startNginx} {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	if binary == "" {
		if binary, err = served.Build(ctx, s.dir); err != nil {
			return nil, err
		}
	}
	if err := s.startTidegate(ctx, binary); err != nil {
		return nil, err
	}
	return s, s.probe(ctx)
}

// close ends everything that was started.
func (s *site) close() {
	if s.tidegate != nil {
		s.tidegate.Stop()
	}
	for _, d := range []*daemon.Server{s.redis, s.nginx} {
		if d != nil {
			d.Stop()
		}
	}
	_ = os.RemoveAll(s.dir)
}

func (s *site) findWrk(context.Context) (err error) {
	if s.get, err = wrk.Find(s.dir); err != nil {
		return err
	}
	s.versions = append(s.versions, s.get.Version()+", the load generator over HTTP")
	if s.post, err = s.get.With("check", "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = '"+question+"'\n"); err != nil {
		return err
	}
	var headers strings.Builder
	for name, value := range forwarded {
		fmt.Fprintf(&headers, "wrk.headers['%s'] = '%s'\n", name, value)
	}
	s.auth, err = s.get.With("auth", headers.String())
	return err
}

// startRedis starts the one whose INCR is raced.
func (s *site) startRedis(ctx context.Context) error {
	dir, address, err := daemon.Folder(s.dir, "redis")
	if err != nil {
		return err
	}
	if s.redis, err = daemon.StartRedis(ctx, dir, address); err != nil {
		return err
	}
	s.versions = append(s.versions, daemon.RedisVersion(ctx))
	return askOnce(address, incr.append(nil, "probe"), ":1\r\n")
}

// nginxServer answers by itself, as fast as nginx can.
const nginxServer = `  server {
    listen %s;
    location / { return 200 "allowed\n"; }
  }
`

func (s *site) startNginx(ctx context.Context) error {
	program, err := daemon.FindNginx()
	if err != nil {
		return err
	}
	dir, address, err := daemon.Folder(s.dir, "nginx")
	if err != nil {
		return err
	}
	args, err := daemon.NginxArgs(dir, fmt.Sprintf(nginxServer, address))
	if err != nil {
		return err
	}
	s.versions = append(s.versions, daemon.NginxVersion(program))
	if s.nginx, err = daemon.Start("nginx", dir, address, nil, program, args...); err != nil {
		return err
	}
	return s.nginx.Await(ctx, s.probeNginx)
}

// rulesText is one limit that is never used up, and one that is by its second request.
const rulesText = `version: 1
rules:
  - { name: clients, match: /users/, per: ip, limits: { rate: 1000000/second, algorithm: token_bucket } }
  - { name: scarce, match: /scarce, per: ip, limits: 1/day }
`

// startTidegate leaves everything as it is by default, but for the access log.
func (s *site) startTidegate(ctx context.Context, binary string) (err error) {
	dir, resp, err := daemon.Folder(s.dir, "serve")
	if err != nil {
		return err
	}
	if s.check, err = daemon.FreeAddress(); err != nil {
		return err
	}
	s.resp = resp
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte(rulesText), 0o600); err != nil {
		return err
	}
	s.tidegate, err = served.Start(ctx, binary, "--demo", "--rules="+rules, "--listen.resp="+s.resp, "--listen.check="+s.check, "--trust.proxies=127.0.0.1")
	return err
}

// entrants are who is asked, those of one race (resp), of one depth of it (resp64) or all.
func (s *site) entrants(only string) (es entrants) {
	add := func(e *entrant) *entrant {
		if only == "" || only == e.race || only == fmt.Sprint(e.race, e.depth) {
			es = append(es, e)
		}
		return e
	}
	over := func(c respCommand, address string, depth int) heatOf {
		return func(ctx context.Context, d time.Duration) (heat, error) {
			t, err := c.drive(ctx, address, depth, d)
			return heat{t.replies, t.wrong, t.rate(), t.p99}, err
		}
	}
	for _, depth := range append(depths[:], millionDepth) {
		redis := add(&entrant{name: fmt.Sprintf("redis-server, INCR, pipeline of %d", depth), race: "resp", depth: depth, pid: s.redis.PID, ask: over(incr, s.redis.Address, depth)})
		add(&entrant{name: fmt.Sprintf("Tidegate, CL.THROTTLE, pipeline of %d", depth), race: "resp", depth: depth, rival: redis, pid: s.tidegate.PID, ask: over(throttle, s.resp, depth)})
	}
	nginx := add(&entrant{name: "nginx, return 200", race: "http", pid: s.nginx.PID, ask: by(s.get, "http://"+s.nginx.Address+"/")})
	add(&entrant{name: checkName, race: "http", rival: nginx, pid: s.tidegate.PID, ask: by(s.post, "http://"+s.check+checkPath)})
	add(&entrant{name: "Tidegate, forward-auth", race: "http", rival: nginx, pid: s.tidegate.PID, ask: by(s.auth, "http://"+s.check+authPath)})
	return es
}

// by returns a heat of wrk.
func by(w wrk.Program, url string) heatOf {
	return func(ctx context.Context, d time.Duration) (heat, error) {
		t, err := w.Run(ctx, url, d)
		return heat{t.Requests, t.Status + t.Socket, t.Rate(), time.Duration(t.P99) * time.Microsecond}, err
	}
}
