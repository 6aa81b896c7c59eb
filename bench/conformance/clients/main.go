// Command clients has Redis clients of npm, node-redis and ioredis, talk to Tidegate's Redis
// protocol with their defaults, in both versions of the protocol. Their versions are in
// package.json. A test of this package does the same with go-redis.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/bench/internal/rig"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/resp"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

var (
	//go:embed clients.mjs
	script []byte
	//go:embed package.json
	packages []byte
)

const ruleFile = `version: 1
identify: { user: descriptor }
rules:
  - { name: posts, match: /posts, per: user, limits: 3/hour }
  - { name: chat, match: /chat, per: user, limits: 100/24h }
`

func main() { rig.Main("clients", 5*time.Minute, run) }

func run(ctx context.Context, _ []string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string][]byte{"clients.mjs": script, "package.json": packages} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := command(ctx, dir, out, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return err
	}
	addr, stop, err := serve()
	if err != nil {
		return err
	}
	defer stop()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return command(ctx, dir, out, "node", "clients.mjs", host, port)
}

func command(ctx context.Context, dir string, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %q: %w", name, args, err)
	}
	return nil
}

// serve starts a server with two users, and returns its address and what stops it.
func serve() (addr string, stop func(), err error) {
	set, err := rules.Parse("rules.yaml", []byte(ruleFile), rules.Config{})
	if err != nil {
		return "", nil, err
	}
	store := memory.New()
	s := resp.New(resp.Options{
		Desk: desk.New(tidegate.NewGate(set, store)), Store: store,
		Users:  []resp.User{{Name: "default", Password: "secret"}, {Name: "ann", Password: "pass", Prefix: "ann:"}},
		Report: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), func() { _ = s.Close() }, nil
}
