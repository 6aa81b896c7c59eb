package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"
)

// StartRedis runs a redis-server that keeps nothing on disk, with more args if there are any, and
// returns when it answers. Where it may be called is as for [Start].
func StartRedis(ctx context.Context, dir, address string, args ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is missing (scripts/test-deps.sh installs it): %w", err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s, err := Start("redis-server", dir, address, nil, program, append([]string{
		"--port", port, "--bind", host, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	if err := s.Await(ctx, func(context.Context) error { return ping(address) }); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// RedisVersion returns the name and the version of redis-server.
func RedisVersion(ctx context.Context) string {
	out, _ := exec.CommandContext(ctx, "redis-server", "--version").Output() // Redis server v=7.0.15 sha=…
	if fields := strings.Fields(string(out)); len(fields) > 2 {
		return "redis-server " + strings.TrimPrefix(fields[2], "v=")
	}
	return "redis-server"
}

// ping returns an error unless a Redis answers.
func ping(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return err
	}
	reply := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(c, reply); err != nil {
		return err
	}
	if string(reply) != "+PONG\r\n" {
		return fmt.Errorf("PING is answered with %q", reply)
	}
	return nil
}
