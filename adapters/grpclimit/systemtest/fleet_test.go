package systemtest

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func open(t testing.TB, url string) *fleet.Store {
	t.Helper()
	store, err := fleet.Open(url, fleet.Options{Deadline: time.Minute}) // that a busy machine does not miss
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestFleet(t *testing.T) {
	server, n := testdep.Redis(t), 0
	calltest.Run(t, func(t testing.TB) tidegate.Store {
		n++
		return open(t, fmt.Sprintf("redis://%s?prefix=t%d", server.Addr, n))
	})
}

// Three servers that share a Redis admit as many calls of every kind as one.
func TestServersShareALimit(t *testing.T) {
	redis := testdep.Redis(t)
	limit := tidegate.MustLimit(tidegate.Spec{Name: "shared", Events: 20, Period: 7 * 24 * time.Hour})
	var clients []pb.TestServiceClient
	for range 3 {
		lim := tidegate.New(open(t, "redis://"+redis.Addr), limit)
		clients = append(clients, calltest.Dial(t, calltest.Serve(t, new(calltest.Service), grpclimit.Limit(lim, grpclimit.Method).ServerOptions()...)))
	}
	for _, kind := range calltest.Kinds {
		admitted := 0
		for i := range 30 {
			switch a := kind.Call(t.Context(), clients[i%3]); a.Code() {
			case codes.OK:
				admitted++
			case codes.ResourceExhausted:
			default:
				t.Fatalf("%s: %v", kind.Name, a.Err)
			}
		}
		if admitted != 20 {
			t.Errorf("%s: three servers admitted %d calls, want 20", kind.Name, admitted)
		}
	}
}
