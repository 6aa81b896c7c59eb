package grpclimit_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/store/memory"
)

// heap is how much is in use once garbage is collected.
func heap() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Calls that are refused, with much metadata and keys of their own, leave nothing behind.
func TestMetadataIsNotKept(t *testing.T) {
	const text = `
version: 1
identify: { user: metadata x-user }
rules:
  - { name: site, per: everyone, limits: 1/week }
  - { name: users, per: user, limits: 1/week }
`
	for name, server := range map[string]*grpclimit.Server{
		"limit": grpclimit.Limit(tidegate.New(memory.New(), tidegate.PerHour(1)), grpclimit.Method),
		"gate":  grpclimit.Gate(calltest.Gate(t, text, memory.New())),
	} {
		t.Run(name, func(t *testing.T) {
			service := new(calltest.Service)
			client := calltest.Dial(t, calltest.Serve(t, service, server.ServerOptions()...))
			call := func(i int) {
				letter := string(rune('a' + i%26))
				long := letter + strings.Repeat("~", 100<<10) // which HTTP/2 sends as they are: letters are packed, which takes long
				ctx := metadata.AppendToOutgoingContext(t.Context(), "x-user", long, "x-"+letter, long)
				for _, kind := range calltest.Kinds {
					if a := kind.Call(ctx, client); a.Code() != codes.ResourceExhausted && a.Err != nil {
						t.Fatalf("%s: %v", kind.Name, a.Err)
					}
				}
			}
			for i := range 20 {
				call(i) // what is there once and for all
			}
			before := heap()
			for i := range 100 {
				call(i)
			}
			const sent = 100 * 4 * 200 << 10 // bytes
			if grown := heap() - before; grown > sent/20 {
				t.Errorf("%d bytes more in use after %d bytes of metadata", grown, int64(sent))
			}
			if n := service.Handled.Load(); n > 4 {
				t.Errorf("%d handlers were called", n)
			}
		})
	}
}

// Of many streams at once, those beyond the slots are refused, and all slots are free when the
// client is gone.
func TestManyStreams(t *testing.T) {
	const slots, streams = 10, 1000
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{Events: slots, Period: time.Hour, Algorithm: tidegate.Concurrency}))
	service := new(calltest.Service)
	addr := calltest.Serve(t, service, grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...)
	flood := func() {
		conn, err := grpc.NewClient(addr, calltest.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // without a word on any stream
		client := pb.NewTestServiceClient(conn)
		var all sync.WaitGroup
		results := make(chan codes.Code, streams)
		for range streams {
			all.Go(func() {
				stream, err := client.FullDuplexCall(t.Context())
				if err == nil {
					_ = stream.Send(&pb.StreamingOutputCallRequest{})
					_, err = stream.Recv()
				}
				a := calltest.Answer{Err: err}
				results <- a.Code()
			})
		}
		all.Wait()
		admitted := 0
		for range streams {
			switch code := <-results; code {
			case codes.OK:
				admitted++
			case codes.ResourceExhausted:
			default:
				t.Errorf("got %s", code)
			}
		}
		if admitted != slots {
			t.Errorf("%d streams were admitted, want %d", admitted, slots)
		}
	}
	free := func() bool { return lim.Peek(t.Context(), "127.0.0.1").Remaining == slots }
	flood()
	calltest.Eventually(t, "all slots to be free", free)
	goroutines, before := runtime.NumGoroutine(), heap()
	for range 5 {
		flood()
		calltest.Eventually(t, "all slots to be free", free)
	}
	calltest.Eventually(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines+10 })
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d bytes more in use after %d streams", grown, 5*streams)
	}
}
