package systemtest

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A call that waits in the queue of a fleet leaves it with its context, and its handler does not
// run.
func TestQueueOfAFleet(t *testing.T) {
	redis := testdep.Redis(t)
	for _, algorithm := range []string{"leaky_bucket", "token_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"} {
		text := `
version: 1
rules:
  - name: ` + algorithm + `
    per: everyone
    limits: { rate: 1/50m, algorithm: ` + algorithm + ` }
    queue: { places: 10, max_wait: 2h }
`
		for _, kind := range calltest.Kinds {
			t.Run(algorithm+", "+kind.Name, func(t *testing.T) {
				store := open(t, "redis://"+redis.Addr+"?prefix="+algorithm+kind.Name[:1])
				service, booked := new(calltest.Service), new(atomic.Bool)
				o := grpclimit.Options{OnDecision: func(_ context.Context, _ string, d tidegate.Decision) {
					if d.Wait > 0 {
						booked.Store(true) // a token bucket gives its turns up to an hour ahead, and has no queue
					}
				}}
				client := calltest.Dial(t, calltest.Serve(t, service, o.Gate(calltest.Gate(t, text, store)).ServerOptions()...))
				if a := kind.Call(t.Context(), client); a.Err != nil {
					t.Fatal(a.Err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan calltest.Answer)
				go func() { ended <- kind.Call(ctx, client) }()
				calltest.Eventually(t, "the call to wait", func() bool { return store.Waiting() == 1 || booked.Load() })
				cancel()
				if a := <-ended; a.Code() != codes.Canceled {
					t.Errorf("got %v", a.Err)
				}
				calltest.Eventually(t, "the queue to be empty", func() bool { return store.Waiting() == 0 })
				if n := service.Handled.Load(); n != 1 {
					t.Errorf("%d handlers were called, want 1", n)
				}
			})
		}
	}
}
