package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"tidegate.dev/tidegate/bench/internal/daemon"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

// site is where the race is run: the programs, the upstream and what was started.
type site struct {
	dir      string
	nginx    string // programs
	caddy    string
	tidegate string
	wrk      wrk.Program
	h2load   h2load
	upstream string // its address
	versions []string
	started  []*server
}

// openSite builds what has to be built and starts the upstream. A binary that is
// given is raced as it is.
func openSite(ctx context.Context, binary string) (_ *site, err error) {
	s := &site{tidegate: binary}
	if s.dir, err = os.MkdirTemp("", "tidegate-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.wrk, err = wrk.Find(s.dir); err != nil {
		return nil, err
	}
	if s.h2load, err = findH2load(); err != nil {
		return nil, err
	}
	if s.nginx, err = daemon.FindNginx(); err != nil {
		return nil, err
	}
	if err = s.build(ctx); err != nil {
		return nil, err
	}
	s.versions = []string{daemon.NginxVersion(s.nginx), s.versionOfCaddy(ctx), s.wrk.Version() + ", the load generator"}
	return s, s.startUpstream(ctx)
}

// build compiles Caddy and Tidegate with the Go that compiled this program.
func (s *site) build(ctx context.Context) error {
	here, err := goList(ctx, "-f", "{{.Dir}}", "tidegate.dev/tidegate/bench/gateway")
	if err != nil {
		return err
	}
	rig.Progress("building Caddy with its rate-limit module: minutes the first time")
	s.caddy = filepath.Join(s.dir, "caddy-bin")
	if err := goBuild(ctx, filepath.Join(here, "caddy"), s.caddy, "."); err != nil {
		return err
	}
	if s.tidegate != "" {
		s.tidegate, err = filepath.Abs(s.tidegate)
		return err
	}
	root, err := goList(ctx, "-m", "-f", "{{.Dir}}", "tidegate.dev/tidegate")
	if err != nil {
		return err
	}
	rig.Progress("building tidegate")
	s.tidegate = filepath.Join(s.dir, "tidegate-bin")
	return goBuild(ctx, root, s.tidegate, "./cmd/tidegate")
}

func goTool() string { return cmp.Or(os.Getenv("GO"), "go") }

func goList(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, goTool(), append([]string{"list"}, args...)...)
	var output bytes.Buffer
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the source; run this from the folder bench, as make does: %w\n%s", err, &output)
	}
	return strings.TrimSpace(string(out)), nil
}

func goBuild(ctx context.Context, folder, output, pkg string) error {
	cmd := exec.CommandContext(ctx, goTool(), "build", "-o", output, pkg)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", pkg, folder, err, out)
	}
	return nil
}

func (s *site) startUpstream(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to run it again: %w", err)
	}
	up, err := s.start("the upstream", func(dir, address string) command {
		return command{program: self, args: []string{"-child", address}}
	})
	if err != nil {
		return err
	}
	s.upstream = up.Address
	return up.await(ctx, usual, http.StatusOK)
}

// command is how to start a server; prepare has written what it reads.
type command struct {
	program string
	args    []string
	env     []string
	prepare error
}

// start runs a server in a folder of its own.
func (s *site) start(name string, how func(dir, address string) command) (*server, error) {
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		return nil, err
	}
	address, err := daemon.FreeAddress()
	if err != nil {
		return nil, err
	}
	c := how(dir, address)
	if c.prepare != nil {
		return nil, fmt.Errorf("start %s: %w", name, c.prepare)
	}
	started, err := daemon.Start(name, dir, address, c.env, c.program, c.args...)
	if err != nil {
		return nil, err
	}
	srv := &server{started}
	s.started = append(s.started, srv)
	return srv, nil
}

// close ends everything that was started.
func (s *site) close() {
	for _, srv := range s.started {
		srv.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// enter starts the contestants, all of them at once: who is not asked takes
// nothing.
func (s *site) enter(ctx context.Context) (entrants, error) {
	var es entrants
	var errs []error
	for _, c := range append(slices.Clip(contestants), others()...) {
		rig.Progress("starting %s", c.name)
		srv, err := s.start(c.name, func(dir, address string) command { return c.how(s, dir, address) })
		if err == nil {
			err = srv.await(ctx, c.load, c.status)
		}
		es, errs = append(es, &entrant{contestant: c, server: srv}), append(errs, err)
	}
	return es, errors.Join(errs...)
}
