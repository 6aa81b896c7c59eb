package main

import (
	"context"
	"regexp"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"tidegate.dev/tidegate/bench/internal/daemon"
)

// redisServer is a Redis of ours, on loopback.
type redisServer struct {
	*daemon.Server
	control *goredis.Client
}

func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	address, err := daemon.FreeAddress()
	if err != nil {
		return nil, err
	}
	return startRedisAt(ctx, dir, address)
}

func startRedisAt(ctx context.Context, dir, address string) (*redisServer, error) {
	s, err := daemon.StartRedis(ctx, dir, address)
	if err != nil {
		return nil, err
	}
	return &redisServer{s, goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1})}, nil
}

func (r *redisServer) stop() {
	_ = r.control.Close()
	r.Stop()
}

var scriptCalls = regexp.MustCompile(`cmdstat_(?:evalsha|eval|evalsha_ro):calls=(\d+)`)

// calls returns how many scripts it has run.
func (r *redisServer) calls(ctx context.Context) (sum int64, err error) {
	info, err := r.control.Info(ctx, "commandstats").Result()
	for _, m := range scriptCalls.FindAllStringSubmatch(info, -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		sum += n
	}
	return sum, err
}
