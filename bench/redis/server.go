package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// startTime is how long Redis may take to answer.
const startTime = 15 * time.Second

// server is a redis-server of ours, on loopback, that keeps nothing on disk.
type server struct {
	address string
	version string
	control *goredis.Client // asks how it is doing
	cmd     *exec.Cmd
	dir     string
	ended   chan struct{}
}

func startRedis(ctx context.Context, args ...string) (*server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server is missing (scripts/test-deps.sh installs it): %w", err)
	}
	s := &server{ended: make(chan struct{})}
	if s.dir, err = os.MkdirTemp("", "tidegate-bench-"); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.address = "127.0.0.1:" + port
	s.cmd = exec.Command(program, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--logfile", "log",
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)...)
	s.cmd.SysProcAttr = endWithUs()
	started := make(chan error)
	go func() {
		// Children are told to end with the thread that started them.
		runtime.LockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start redis-server: %w", err), os.RemoveAll(s.dir))
	}
	s.control = goredis.NewClient(&goredis.Options{Addr: s.address, MaxRetries: -1})
	if err := s.await(ctx); err != nil {
		log, _ := os.ReadFile(s.dir + "/log")
		s.stop()
		return nil, fmt.Errorf("start redis-server: %w\n%s", err, log)
	}
	return s, nil
}

func freePort() (string, error) {
	address, err := daemon.FreeAddress()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	return port, err
}

// await returns once Redis answers.
func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		info, err := s.control.Info(ctx, "server").Result()
		if err == nil {
			s.version = "redis-server " + field(info, "redis_version")
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *server) stop() {
	_ = s.control.Close()
	_ = s.cmd.Process.Kill() // there is nothing to lose
	<-s.ended
	_ = os.RemoveAll(s.dir)
}

func (s *server) where() string { return s.address }

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

// field is the value of a line of INFO.
func field(info, name string) string {
	m := regexp.MustCompile(`(?m)^` + name + `:([^\r\n]*)`).FindStringSubmatch(info)
	if m == nil {
		return ""
	}
	return m[1]
}
