package calltest

import (
	"context"
	"net/http"
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
	"tidegate.dev/tidegate/rules"
)

// Run runs the suite. Each part asks store for an empty store.
func Run(t *testing.T, store func(t testing.TB) tidegate.Store) {
	t.Run("limits", func(t *testing.T) { testLimits(t, store(t)) })
	t.Run("slots", func(t *testing.T) { testSlots(t, store(t)) })
	t.Run("retry policy", func(t *testing.T) { testRetryPolicy(t, store(t)) })
	t.Run("messages", func(t *testing.T) { testMessages(t, store(t)) })
}

// Gate returns a gate with the rules in text.
func Gate(t testing.TB, text string, store tidegate.Store) *tidegate.Gate {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return tidegate.NewGate(rules.NewLive(set), store)
}

// As returns a context for calls by a user.
func As(t testing.TB, user string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "x-user", user)
}

const week = 7 * 24 * time.Hour

// limits returns a limit of every algorithm, with how many calls it admits. Periods are so long
// that no capacity comes back during a test.
func limits() map[*tidegate.Limit]int {
	all := map[*tidegate.Limit]int{
		tidegate.MustLimit(tidegate.Spec{Name: "quota", Events: 3, Algorithm: tidegate.Quota, Calendar: tidegate.Year}):             3,
		tidegate.MustLimit(tidegate.Spec{Name: "leaky_bucket", Events: 3, Period: week, Algorithm: tidegate.LeakyBucket, Burst: 2}): 1, // its queue of 2 is for calls that wait
	}
	for _, algorithm := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		all[tidegate.MustLimit(tidegate.Spec{Name: algorithm.String(), Events: 3, Period: week, Algorithm: algorithm})] = 3
	}
	return all
}

// testLimits puts calls of every kind, by several users, under limits of every algorithm.
func testLimits(t *testing.T, store tidegate.Store) {
	for limit, admits := range limits() {
		service := new(Service)
		lim := tidegate.New(store, limit)
		byUserAndMethod := func(r *http.Request) (string, bool) {
			return tidegate.Key(r.Header.Get("X-User"), r.URL.Path), true
		}
		client := Dial(t, Serve(t, service, grpclimit.Limit(lim, byUserAndMethod).ServerOptions()...))
		for _, kind := range Kinds {
			t.Run(limit.Name+", "+kind.Name, func(t *testing.T) {
				for _, user := range []string{"alice", "bob", "carol"} {
					before := service.Handled.Load()
					for i := range admits {
						a := kind.Call(As(t, user), client)
						if a.Err != nil || !strings.HasPrefix(strings.Join(a.Header["ratelimit"], ""), `"`+limit.Name+`";r=`) {
							t.Fatalf("call %d of %s: %v, header %v", i, user, a.Err, a.Header)
						}
					}
					a := kind.Call(As(t, user), client)
					if a.Code() != codes.ResourceExhausted || a.Violated() != limit.Name {
						t.Fatalf("beyond the limit: %v, violated %q", a.Err, a.Violated())
					}
					if a.RetryDelay() <= 0 || a.Pushback() != "-1" || len(a.Header) != 0 || len(a.Trailer["ratelimit"]) != 1 || len(a.Trailer["retry-after"]) != 1 {
						t.Errorf("a refusal for long: retry in %s, header %v, trailer %v", a.RetryDelay(), a.Header, a.Trailer)
					}
					if n := service.Handled.Load() - before; n != int64(admits) {
						t.Errorf("%d handlers were called, want %d", n, admits)
					}
				}
			})
		}
	}
}

// testRetryPolicy lets gRPC's own retries meet a limit. Each waits as long as the server says,
// although the policy would have it retry within 2 ms. A refusal for long is not retried.
func testRetryPolicy(t *testing.T, store tidegate.Store) {
	const policy = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`
	for _, kind := range Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			attempts := new(Attempts)
			limit := tidegate.MustLimit(tidegate.Spec{Name: "policy " + kind.Name, Events: 1, Period: 300 * time.Millisecond, Algorithm: tidegate.TokenBucket})
			o := grpclimit.Options{OnDecision: attempts.Note}
			service := new(Service)
			addr := Serve(t, service, o.Limit(tidegate.New(store, limit), grpclimit.Method).ServerOptions()...)
			attempts.Check(t, service, func() Answer {
				return kind.Call(t.Context(), Dial(t, addr, grpc.WithDefaultServiceConfig(policy)))
			})
		})
		t.Run(kind.Name+", final", func(t *testing.T) {
			attempts := new(Attempts)
			limit := tidegate.MustLimit(tidegate.Spec{Name: "final " + kind.Name, Events: 1, Period: week})
			o := grpclimit.Options{OnDecision: attempts.Note}
			addr := Serve(t, new(Service), o.Limit(tidegate.New(store, limit), grpclimit.Method).ServerOptions()...)
			client := Dial(t, addr, grpc.WithDefaultServiceConfig(policy))
			kind.Call(t.Context(), client)
			if a := kind.Call(t.Context(), client); a.Code() != codes.ResourceExhausted || attempts.count() != 2 {
				t.Errorf("%v after %d attempts, want one of the first call and one of the second", a.Err, attempts.count())
			}
		})
	}
}

// Attempts are the decisions of a server about the attempts of calls that are made one by one.
type Attempts struct {
	mu        sync.Mutex
	at        []time.Time
	decisions []tidegate.Decision
}

// Note adds a decision. It is for Options.OnDecision.
func (a *Attempts) Note(_ context.Context, _ string, d tidegate.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.decisions = append(a.at, time.Now()), append(a.decisions, d)
}

func (a *Attempts) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// Check makes calls until the first attempt of one is refused. Every call must succeed in the
// end, and no attempt may come before its time.
func (a *Attempts) Check(t *testing.T, service *Service, call func() Answer) {
	t.Helper()
	refusals, calls := 0, int64(0)
	for ; refusals == 0 && calls < 50; calls++ {
		if got := call(); got.Err != nil {
			t.Fatalf("call %d: %v, trailer %v", calls, got.Err, got.Trailer)
		}
		a.mu.Lock()
		refusals = len(a.at) - int(calls) - 1
		a.mu.Unlock()
	}
	if refusals == 0 {
		t.Fatal("no call was refused: the test shows nothing")
	}
	if n := service.Handled.Load(); n != calls {
		t.Errorf("%d handlers were called for %d calls", n, calls)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, d := range a.decisions[:len(a.decisions)-1] {
		if waited := a.at[i+1].Sub(a.at[i]); !d.OK {
			t.Logf("told to wait for %s, came after %s", d.RetryAfter, waited)
			if waited < d.RetryAfter {
				t.Errorf("an attempt came %s too early", d.RetryAfter-waited)
			}
		}
	}
}

// testMessages limits the messages of streams by a Limiter, which counts the start of a stream as
// well, and by a rule for messages alone.
func testMessages(t *testing.T, store tidegate.Store) {
	limit := tidegate.MustLimit(tidegate.Spec{Name: "messages", Events: 4, Period: week})
	const text = `
version: 1
rules:
  - { name: streams, match: POST /, per: everyone, limits: 10/week }
  - { name: sent, match: MESSAGE /grpc.testing.TestService/, per: everyone, limits: 3/week }
`
	o := grpclimit.Options{Messages: true}
	for name, server := range map[string]*grpclimit.Server{
		"limit": o.Limit(tidegate.New(store, limit), grpclimit.Method), // the start and three messages
		"gate":  o.Gate(Gate(t, text, store)),
	} {
		t.Run(name, func(t *testing.T) {
			client := Dial(t, Serve(t, new(Service), server.ServerOptions()...))
			stream, err := client.FullDuplexCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				err := stream.Send(&pb.StreamingOutputCallRequest{})
				if err == nil {
					_, err = stream.Recv()
				}
				a := Answer{Trailer: stream.Trailer(), Err: err}
				switch {
				case i < 3 && err != nil:
					t.Fatalf("message %d: %v", i, err)
				case i == 3 && (a.Code() != codes.ResourceExhausted || a.Pushback() != "-1" || a.RetryDelay() <= 0):
					t.Errorf("the message beyond the limit: %v, trailer %v", err, a.Trailer)
				}
			}
		})
	}
}
