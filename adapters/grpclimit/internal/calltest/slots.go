package calltest

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
)

const (
	returns = "returns"
	goesOn  = "is cancelled, and its handler goes on"
)

// testSlots holds one slot, whose lease outlasts the test, by a call of every kind, and ends the
// call in every way.
func testSlots(t *testing.T, store tidegate.Store) {
	limit := tidegate.MustLimit(tidegate.Spec{Name: "slot", Events: 1, Period: time.Hour, Algorithm: tidegate.Concurrency})
	const text = `
version: 1
rules:
  - { name: open, match: POST /, per: route, concurrency: { slots: 1, lease: 1h } }
`
	for name, server := range map[string]*grpclimit.Server{
		"limit": grpclimit.Limit(tidegate.New(store, limit), grpclimit.Method),
		"gate":  grpclimit.Gate(Gate(t, text, store)),
	} {
		holder := &holder{entered: make(chan struct{}), release: make(chan struct{})}
		client := Dial(t, Serve(t, &Service{Do: holder.do}, server.ServerOptions()...))
		for _, kind := range Kinds {
			for _, way := range []string{returns, "is cancelled", goesOn} {
				t.Run(name+", "+kind.Name+", "+way, func(t *testing.T) {
					ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "x-hold", way))
					defer cancel()
					over := make(chan struct{})
					go func() {
						kind.Call(ctx, client)
						close(over)
					}()
					<-holder.entered
					for range 3 {
						if a := kind.Call(t.Context(), client); a.Code() != codes.ResourceExhausted || a.Pushback() != "1000" {
							t.Fatalf("beside a call that holds the slot: %v, trailer %v", a.Err, a.Trailer)
						}
					}
					if way == returns {
						holder.release <- struct{}{}
					} else {
						cancel()
					}
					<-over
					Eventually(t, "the slot to be free", func() bool { return kind.Call(t.Context(), client).Err == nil })
					if way == goesOn {
						holder.release <- struct{}{}
					}
				})
			}
		}
	}
}

// holder has calls with the metadata x-hold wait until they are released or cancelled.
type holder struct{ entered, release chan struct{} }

func (h *holder) do(ctx context.Context) error {
	way := metadata.ValueFromIncomingContext(ctx, "x-hold")
	if len(way) == 0 {
		return nil
	}
	left := ctx.Done()
	if way[0] == goesOn {
		left = nil
	}
	h.entered <- struct{}{}
	select {
	case <-h.release:
		return nil
	case <-left:
		return ctx.Err()
	}
}

// Eventually polls until ok is true, and fails the test if it is not after 30 s.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
