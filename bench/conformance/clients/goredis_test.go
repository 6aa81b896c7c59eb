package main

import (
	"context"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// go-redis with its defaults, in both versions of the protocol: one by one, pipelined, and
// what it must not expect.
func TestGoRedis(t *testing.T) {
	addr, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, o := range []goredis.Options{
		{Username: "ann", Password: "pass"},
		{Username: "ann", Password: "pass", Protocol: 2, ClientName: "two"},
		{Password: "secret", Protocol: 3, DisableIdentity: true},
	} {
		o.Addr = addr
		c := goredis.NewClient(&o)
		defer c.Close()
		ctx := context.Background()
		if err := c.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Del(ctx, "k").Err(); err != nil {
			t.Error(err)
		}
		if five, err := c.Do(ctx, "CL.THROTTLE", "k", 15, 30, 60).Int64Slice(); err != nil || five[1] != 16 || five[2] != 15 || five[3] != -1 || five[4] != 2 {
			t.Errorf("%v, %v", five, err)
		}
		pipe := c.Pipeline()
		for range 100 {
			pipe.Do(ctx, "CL.THROTTLE", "k", 9, 1, 3600)
		}
		all, err := pipe.Exec(ctx)
		if err != nil {
			t.Fatal(err)
		}
		passed := 0
		for _, one := range all {
			five, err := one.(*goredis.Cmd).Int64Slice()
			if err != nil {
				t.Fatal(err)
			}
			if five[0] == 0 {
				passed++
			}
		}
		if passed != 9 { // two seconds are owed already
			t.Errorf("%d of 100 passed, want 9", passed)
		}
		if n, err := c.Del(ctx, "k", "other").Result(); n != 1 || err != nil {
			t.Errorf("DEL: %d, %v", n, err)
		}
		if _, err := c.Do(ctx, "TG.CHECK", "PATH", "/posts", "AS", "user", o.ClientName).Result(); err != nil {
			t.Error(err)
		}
		if err := c.Get(ctx, "k").Err(); err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("GET: %v", err)
		}
		if _, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error { return p.Ping(ctx).Err() }); err == nil {
			t.Error("a transaction was accepted")
		}
	}
}
