package demo

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// In a minute some ask often enough to be refused by the example rules, most do not, and nobody asks
// what the commands to try are about.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		asked := make(map[string]int)
		done := make(chan struct{})
		go func() {
			defer close(done)
			Traffic(ctx, func(method, path, ip string) {
				if method != "GET" || path != "/search" || !strings.HasPrefix(ip, "203.0.113.") {
					t.Errorf("%s %s by %s", method, path, ip)
				}
				asked[ip]++
			})
		}()
		time.Sleep(time.Minute)
		end()
		<-done
		over := 0
		for _, n := range asked {
			if n > 66 {
				over++
			}
		}
		if over != 2 || len(asked) < 20 {
			t.Errorf("%d of %d are over the limit: %v", over, len(asked), asked)
		}
	})
}
