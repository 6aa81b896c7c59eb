package main

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
)

var versions = []string{
	"redis_rate: github.com/go-redis/redis_rate/v10 v10.0.1 on github.com/redis/go-redis/v9 v9.23.0",
	"throttled: github.com/throttled/throttled/v2 v2.15.0, goredisstore.v9 on the same go-redis",
}

// pool is how many connections a rival may have: one per caller, so that nobody
// waits for one. By default go-redis has ten per core.
var pool = mostCallers

func rivalClient(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: address, PoolSize: pool, PipelinePoolSize: pool})
}

var redisRate = contestant{name: "redis_rate", open: func(address string, q quota) (limiter, error) {
	client := rivalClient(address)
	return rateLimiter(redis_rate.NewLimiter(client), client, q), nil
}}

// redisRatePiped is redis_rate on go-redis' pipelines, which are still marked
// experimental. No bar is about it.
var redisRatePiped = contestant{name: "redis_rate, AutoPipeline", open: func(address string, q quota) (limiter, error) {
	client := rivalClient(address)
	pipe, err := client.AutoPipeline()
	if err != nil {
		_ = client.Close()
		return limiter{}, err
	}
	return rateLimiter(redis_rate.NewLimiter(pipe), client, q), nil
}}

func rateLimiter(lim *redis_rate.Limiter, client *goredis.Client, q quota) limiter {
	limit := redis_rate.Limit{Rate: q.events, Period: q.period, Burst: q.burst}
	return limiter{
		caller: func() decide {
			return func(ctx context.Context, key string) (bool, error) {
				r, err := lim.Allow(ctx, q.name+":"+key, limit)
				return err == nil && r.Allowed > 0, err
			}
		},
		close: func() { _ = client.Close() },
	}
}

var throttledGCRA = contestant{name: "throttled", open: func(address string, q quota) (limiter, error) {
	client := rivalClient(address)
	store, err := goredisstore.NewCtx(client, "throttled:"+q.name+":")
	if err != nil {
		return limiter{}, err
	}
	lim, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(q.events, q.period),
		MaxBurst: q.burst - 1, // it counts what may pass beyond the first
	})
	if err != nil {
		return limiter{}, err
	}
	return limiter{
		caller: func() decide {
			return func(ctx context.Context, key string) (bool, error) {
				limited, _, err := lim.RateLimitCtx(ctx, key, 1)
				return err == nil && !limited, err
			}
		},
		close: func() { _ = client.Close() },
	}, nil
}}
