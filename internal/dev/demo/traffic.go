package demo

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Traffic asks as some clients would that search, until ctx ends: most of them now and then, some
// in clumps, and one all the time. Their addresses are of a network for documentation, and none of
// them asks what [Tries] are about.
func Traffic(ctx context.Context, ask func(method, path, ip string)) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, ip := range senders(n) {
				ask("GET", "/search", ip)
			}
		}
	}
}

// senders returns the addresses that send a request in tick n, one for each request.
func senders(n int) (who []string) {
	if n%4 == 0 { // 150 a minute, of 60
		who = append(who, "203.0.113.7")
	}
	if n%300 == 0 { // 90 at once, every half minute
		for range 90 {
			who = append(who, "203.0.113.8")
		}
	}
	// Others come and go in waves of some minutes.
	busy := 1 + int(3*(1+math.Sin(float64(n)/600)))
	if n%5 == 0 {
		for i := range busy {
			who = append(who, fmt.Sprintf("203.0.113.%d", 20+(n/5+7*i)%40))
		}
	}
	return who
}
