// Command streamworker works off requests that a rule with `defer: { to: stream NAME }` has appended to a
// Redis Stream: streamworker 127.0.0.1:6379 NAME. Run as many as there is work for.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/redis/rueidis"
)

func main() {
	redis, stream := os.Args[1], os.Args[2]
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redis}, DisableCache: true})
	if err != nil {
		log.Fatal(err)
	}
	ctx, me := context.Background(), fmt.Sprint("worker-", os.Getpid())
	_ = c.Do(ctx, c.B().XgroupCreate().Key(stream).Group("workers").Id("0").Mkstream().Build()) // it may be there
	for {
		// What a worker took a minute ago and did not finish, as it is dead, comes first.
		c.Do(ctx, c.B().Xautoclaim().Key(stream).Group("workers").Consumer(me).MinIdleTime("60000").Start("0").Justid().Build())
		for _, from := range []string{"0", ">"} { // ours that are not finished, and new ones
			read := c.B().Xreadgroup().Group("workers", me).Count(1).Block(1000).Streams().Key(stream).Id(from).Build()
			got, err := c.Do(ctx, read).AsXRead()
			if err != nil && !rueidis.IsRedisNil(err) {
				log.Fatal(err)
			}
			for _, e := range got[stream] {
				if work(e.FieldValues) {
					c.Do(ctx, c.B().Xack().Key(stream).Group("workers").Id(e.ID).Build())
					c.Do(ctx, c.B().Xdel().Key(stream).Id(e.ID).Build()) // its place is free again
				}
			}
		}
	}
}

// work does what the request asks for, once for each idempotency_key, and reports whether that is done.
func work(r map[string]string) bool {
	if r["v"] != "1" {
		return false
	}
	fmt.Println(r["idempotency_key"], r["rule"], r["method"], r["url"], r["body"])
	return true
}
