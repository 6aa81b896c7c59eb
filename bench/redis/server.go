package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// server is a redis-server of ours, on loopback.
type server struct {
	*daemon.Server
	control *goredis.Client // asks how it is doing
	dir     string
}

func startRedis(ctx context.Context, args ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "tidegate-bench-")
	if err != nil {
		return nil, err
	}
	address, err := daemon.FreeAddress()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s, err := daemon.StartRedis(ctx, dir, address, args...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &server{s, goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1}), dir}, nil
}

func (s *server) stop() {
	_ = s.control.Close()
	s.Stop()
	_ = os.RemoveAll(s.dir)
}

func (s *server) where() string { return s.Address }

// account is what Redis has done since it was started.
type account struct {
	cpu   time.Duration // of the whole process
	calls int64         // of scripts
	spent time.Duration // in scripts
}

func (a account) since(b account) account {
	return account{a.cpu - b.cpu, a.calls - b.calls, a.spent - b.spent}
}

func (s *server) account(ctx context.Context) (account, error) {
	info, err := s.control.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return account{}, fmt.Errorf("ask Redis for its CPU time: %w", err)
	}
	return parseAccount(info)
}

var scriptStats = regexp.MustCompile(`(?m)^cmdstat_eval(?:sha)?:calls=([0-9]+),usec=([0-9]+),`)

func parseAccount(info string) (account, error) {
	var a account
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(field(info, name), 64)
		if err != nil {
			return account{}, fmt.Errorf("read Redis' CPU time: %s: %w", name, err)
		}
		a.cpu += time.Duration(seconds * float64(time.Second))
	}
	for _, m := range scriptStats.FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.ParseInt(m[1], 10, 64)
		usec, _ := strconv.ParseInt(m[2], 10, 64)
		a.calls, a.spent = a.calls+calls, a.spent+time.Duration(usec)*time.Microsecond
	}
	return a, nil
}

// field returns the value of a line of INFO.
func field(info, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + `:([^\r\n]*)`).FindStringSubmatch(info)
	if m == nil {
		return ""
	}
	return m[1]
}
