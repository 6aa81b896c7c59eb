package grpclimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/adapters/grpclimit"
	"tidegate.dev/tidegate/adapters/grpclimit/internal/calltest"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// away is a store that cannot answer.
type away struct{}

func (away) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, errors.New("away")
}

func (away) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	return errors.New("away")
}

// tooBig is a Matcher by which a call costs more than its limit can admit.
type tooBig struct{}

var small = tidegate.PerHour(5)

func (tooBig) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, tidegate.Check{Key: "k", Limit: small, Cost: 10})
}

// Each reason for a refusal has its code, and tells clients whether to come again.
func TestCodes(t *testing.T) {
	f := func(server *grpclimit.Server, code codes.Code, pushback, message string) {
		t.Helper()
		service := new(calltest.Service)
		client := calltest.Dial(t, calltest.Serve(t, service, server.ServerOptions()...))
		for _, kind := range calltest.Kinds {
			a := kind.Call(t.Context(), client)
			if a.Code() != code || a.Pushback() != pushback || !strings.Contains(status.Convert(a.Err).Message(), message) {
				t.Errorf("%s: %v, pushback %q; want %s, %q, %q", kind.Name, a.Err, a.Pushback(), code, pushback, message)
			}
			if (a.RetryDelay() > 0) != (pushback != "-1") || (a.Violated() != "") != (code == codes.ResourceExhausted) {
				t.Errorf("%s: details %v", kind.Name, status.Convert(a.Err).Details())
			}
			if len(a.Header) != 0 {
				t.Errorf("%s: header %v: clients could not retry by themselves", kind.Name, a.Header)
			}
		}
		if n := service.Handled.Load(); n != 0 {
			t.Errorf("%d handlers were called", n)
		}
	}
	gate := func(rule string, store tidegate.Store) *grpclimit.Server {
		return grpclimit.Gate(calltest.Gate(t, "version: 1\nidentify: { user: metadata x-user }\nrules:\n  - "+rule, store))
	}
	f(gate("{ name: closed, match: POST /grpc.testing.TestService/, deny: true }", memory.New()), codes.PermissionDenied, "-1", "does not allow")
	f(gate("{ name: closed, deny: true, respond: { status: 404, message: nothing here } }", memory.New()), codes.NotFound, "-1", "nothing here")
	f(gate("{ name: closed, deny: true, respond: { status: 400, message: no such field } }", memory.New()), codes.InvalidArgument, "-1", "no such field")
	f(gate("{ name: known, per: user, missing: refuse, limits: 1/hour }", memory.New()), codes.Unauthenticated, "-1", "has no user")
	f(grpclimit.Gate(tidegate.NewGate(tooBig{}, memory.New())), codes.ResourceExhausted, "-1", "can ever admit")
	f(gate("{ name: strict, per: everyone, limits: 5/hour, on_store_failure: deny }", away{}), codes.Unavailable, "1000", "cannot be checked")
	o := grpclimit.Options{Missing: httplimit.Refuse}
	f(o.Limit(tidegate.New(memory.New(), tidegate.PerHour(1)), httplimit.Header("X-User")), codes.Unauthenticated, "-1", "does not say who")
}

// A store that cannot answer stops nobody unless the rule says so.
func TestStoreAway(t *testing.T) {
	for name, server := range map[string]*grpclimit.Server{
		"limit": grpclimit.Limit(tidegate.New(away{}, tidegate.PerHour(1)), httplimit.IP()),
		"slots": grpclimit.Limit(tidegate.New(away{}, tidegate.MustLimit(tidegate.Spec{Events: 1, Period: time.Hour, Algorithm: tidegate.Concurrency})), httplimit.IP()),
		"gate":  grpclimit.Gate(calltest.Gate(t, "version: 1\nrules:\n  - { name: a, per: ip, limits: 1/hour, on_store_failure: allow }", away{})),
	} {
		client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), server.ServerOptions()...))
		for _, kind := range calltest.Kinds {
			for range 3 {
				if a := kind.Call(t.Context(), client); a.Err != nil || len(a.Header["ratelimit"]) != 0 {
					t.Errorf("%s, %s: %v, header %v", name, kind.Name, a.Err, a.Header)
				}
			}
		}
	}
}

// A rule that counts by status counts the code that the handler returns.
func TestCountByStatus(t *testing.T) {
	const text = `
version: 1
rules:
  - { name: failed, per: everyone, limits: 3/hour, count: { status: 401 } }
`
	for _, kind := range calltest.Kinds {
		var answer atomic.Uint32
		service := &calltest.Service{Do: func(context.Context) error { return status.Error(codes.Code(answer.Load()), "told to") }}
		client := calltest.Dial(t, calltest.Serve(t, service, grpclimit.Gate(calltest.Gate(t, text, memory.New())).ServerOptions()...))
		f := func(code, want codes.Code) {
			t.Helper()
			answer.Store(uint32(code))
			if a := kind.Call(t.Context(), client); a.Code() != want {
				t.Errorf("%s, %s: %v, want %s", kind.Name, code, a.Err, want)
			}
		}
		for range 5 {
			f(codes.OK, codes.OK)
			f(codes.NotFound, codes.NotFound)
		}
		for range 3 {
			f(codes.Unauthenticated, codes.Unauthenticated)
		}
		f(codes.OK, codes.ResourceExhausted)
	}
}

// A call that fails in its handler has no headers, so that gRPC's own retries go on working.
func TestFailedCallHasNoHeaders(t *testing.T) {
	service := &calltest.Service{Do: func(context.Context) error { return status.Error(codes.Unavailable, "told to") }}
	lim := tidegate.New(memory.New(), tidegate.PerHour(100))
	client := calltest.Dial(t, calltest.Serve(t, service, grpclimit.Limit(lim, httplimit.IP()).ServerOptions()...))
	for _, kind := range calltest.Kinds {
		a := kind.Call(t.Context(), client)
		if a.Code() != codes.Unavailable || len(a.Header) != 0 || len(a.Trailer["ratelimit"]) != 1 || a.Pushback() != "" {
			t.Errorf("%s: %v, header %v, trailer %v", kind.Name, a.Err, a.Header, a.Trailer)
		}
	}
}

// A handler knows what its call has cost, whatever the source that the rule names.
func TestSetCost(t *testing.T) {
	const text = `
version: 1
rules:
  - { name: tokens, per: everyone, limits: 100/hour, cost: { reserve: body.max_tokens, else: 40, settle: response.body.usage.total_tokens } }
`
	for _, kind := range calltest.Kinds {
		service := &calltest.Service{Do: func(ctx context.Context) error {
			grpclimit.SetCost(ctx, 99)
			grpclimit.SetCost(ctx, 5)
			return nil
		}}
		client := calltest.Dial(t, calltest.Serve(t, service, grpclimit.Gate(calltest.Gate(t, text, memory.New())).ServerOptions()...))
		for i := range 13 { // 12 calls of 5, and the estimate of another fits
			if a := kind.Call(t.Context(), client); a.Err != nil {
				t.Fatalf("%s: call %d: %v", kind.Name, i, a.Err)
			}
		}
		if a := kind.Call(t.Context(), client); a.Code() != codes.ResourceExhausted {
			t.Errorf("%s: the estimate of 40 does not fit into 35: %v", kind.Name, a.Err)
		}
	}
	grpclimit.SetCost(t.Context(), 1) // of no call: nothing happens
}

// A call that a rule queues waits for its turn, and leaves with its context.
func TestQueue(t *testing.T) {
	const text = `
version: 1
rules:
  - name: line
    per: everyone
    limits: { rate: 1/minute, algorithm: leaky_bucket }
    queue: { places: 10, max_wait: 1h }
`
	for _, kind := range calltest.Kinds {
		service := new(calltest.Service)
		decided := make(chan tidegate.Decision, 10)
		o := grpclimit.Options{OnDecision: func(_ context.Context, _ string, d tidegate.Decision) { decided <- d }}
		client := calltest.Dial(t, calltest.Serve(t, service, o.Gate(calltest.Gate(t, text, memory.New())).ServerOptions()...))
		if a := kind.Call(t.Context(), client); a.Err != nil {
			t.Fatalf("%s: %v", kind.Name, a.Err)
		}
		<-decided
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan calltest.Answer)
		go func() { ended <- kind.Call(ctx, client) }()
		if d := <-decided; !d.OK || d.Wait < 30*time.Second {
			t.Errorf("%s: %+v, want a long wait", kind.Name, d)
		}
		cancel()
		if a := <-ended; a.Code() != codes.Canceled {
			t.Errorf("%s: %v", kind.Name, a.Err)
		}
		if n := service.Handled.Load(); n != 1 {
			t.Errorf("%s: %d handlers were called, want 1", kind.Name, n)
		}
	}
}

// signals say how busy the processor is, in percent.
type signals struct{ cpu atomic.Int64 }

func (s *signals) Signal(string) (float64, bool) { return float64(s.cpu.Load()) / 100, true }

// Soft and elastic limits give way, and say so.
func TestSoftAndElastic(t *testing.T) {
	const text = `
version: 1
identify: { user: metadata x-user }
rules:
  - { name: soft, match: POST /grpc.testing.TestService/UnaryCall, per: user, limits: 2/hour, over: { soft: 100% } }
  - { name: elastic, match: POST /grpc.testing.TestService/FullDuplexCall, per: user, limits: 2/hour, over: { elastic: { while: cpu < 80%, up_to: 2x } } }
`
	var load signals
	load.cpu.Store(50)
	set, err := rules.Parse("rules.yaml", []byte(text), rules.Config{Signals: &load})
	if err != nil {
		t.Fatal(err)
	}
	gate := tidegate.NewGate(rules.NewLive(set), memory.New())
	client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), grpclimit.Gate(gate).ServerOptions()...))
	f := func(kind calltest.Kind, user string, calls int) {
		t.Helper()
		for i := range calls {
			a := kind.Call(calltest.As(t, user), client)
			if soft := slices.Equal(a.Header["x-ratelimit-soft"], []string{"true"}); a.Err != nil || soft != (i >= 2) {
				t.Errorf("%s: call %d: %v, header %v", kind.Name, i, a.Err, a.Header)
			}
		}
		if a := kind.Call(calltest.As(t, user), client); a.Code() != codes.ResourceExhausted {
			t.Errorf("%s: after %d calls: %v", kind.Name, calls, a.Err)
		}
	}
	unary, bidi := calltest.Kinds[0], calltest.Kinds[3]
	f(unary, "alice", 4)
	f(bidi, "alice", 4)
	load.cpu.Store(90)
	f(unary, "bob", 4)
	f(bidi, "bob", 2)
}

// Servers over HTTP and over gRPC that share a limiter share its counters.
func TestSharesCountersWithHTTP(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(2))
	client := calltest.Dial(t, calltest.Serve(t, new(calltest.Service), grpclimit.Limit(lim, httplimit.Header("X-User")).ServerOptions()...))
	calltest.Unary(calltest.As(t, "alice"), client)
	calltest.Unary(t.Context(), client) // by its address
	handler := httplimit.Limit(lim, httplimit.Header("X-User"))(http.NotFoundHandler())
	for _, user := range []string{"alice", ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("X-User", user)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if left := w.Header().Get("RateLimit"); !strings.Contains(left, ";r=0;") {
			t.Errorf("%q: %d, %s", user, w.Code, left)
		}
	}
}
