package rls_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Health is SERVING, and NOT_SERVING while the server shuts down: for those who watch it, and
// for those who ask. A server that shuts down does not wait for those who watch.
func TestHealth(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	health := healthpb.NewHealthClient(s.conn)
	for _, name := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
		got, err := health.Check(ctx, &healthpb.HealthCheckRequest{Service: name})
		if err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	watch, err := health.Watch(ctx, &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", got, err)
	}
	s.Drain()
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("while it drains: %v, %v", got, err)
	}
	if got, err := health.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("while it drains: %v, %v", got, err)
	}
	s.want("OK | OK 4 of 5/hour", "d", "five=x") // it serves on
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable && err != io.EOF {
		t.Errorf("who watched has %v", err)
	}
}

// Shutdown waits for calls in flight, and they have their answers.
func TestShutdownWaits(t *testing.T) {
	o := inMemory(t, plain)
	held := &holding{Store: memory.New(), asked: make(chan struct{}), answer: make(chan struct{})}
	o.Store, o.Near = held, nil
	s := serve(t, o)
	answered := make(chan error, 1)
	go func() {
		_, err := s.client.ShouldRateLimit(context.Background(), request("d", "five=x"))
		answered <- err
	}()
	<-held.asked
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }()
	testdep.Eventually(t, "the end of the listener", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := pb.NewRateLimitServiceClient(dial(t, s.addr)).ShouldRateLimit(ctx, request("d", "shadowed=x"))
		return err != nil
	})
	select {
	case err := <-ended:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(held.answer)
	if err := <-answered; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// holding is a store that answers about the limit of 5 when it is told to.
type holding struct {
	tidegate.Store
	asked, answer chan struct{}
}

func (h *holding) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if strings.Contains(checks[0].Limit.Name, "five") {
		h.asked <- struct{}{}
		<-h.answer
	}
	return h.Store.Take(ctx, checks, n)
}

// A store that panics fails its call alone.
func TestPanic(t *testing.T) {
	for _, far := range []bool{false, true} {
		o := inMemory(t, plain)
		o.Store, o.Near, o.Far = panicking{memory.New()}, nil, far
		s := serve(t, o)
		_, err := s.client.ShouldRateLimit(context.Background(), request("d", "five=x", "a=x"))
		if !far && status.Code(err) != codes.Internal || far && err != nil {
			t.Errorf("far %t: %v", far, err)
		}
		s.want("OK | OK 1 of 2/hour", "d", "a=y")
	}
}

type panicking struct{ tidegate.Store }

func (p panicking) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if strings.Contains(checks[0].Limit.Name, "five") {
		panic("a bug")
	}
	return p.Store.Take(ctx, checks, n)
}

// Reflection lists the services.
func TestReflection(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(s.conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	got, err := stream.Recv()
	if err != nil || !strings.Contains(got.String(), "envoy.service.ratelimit.v3.RateLimitService") || !strings.Contains(got.String(), "grpc.health.v1.Health") {
		t.Errorf("%v, %v", got, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }() // does not wait for the stream
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// What envoyproxy/ratelimit offers over HTTP.
func TestHTTP(t *testing.T) {
	s := serve(t, inMemory(t, read(t, "testdata/demo.yaml")))
	web := httptest.NewServer(s.HTTP())
	defer web.Close()
	do := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, _ := io.ReadAll(got.Body)
		return got.StatusCode, strings.ReplaceAll(string(text), " ", "")
	}
	const ask = `{"domain": "rl", "descriptors": [{"entries": [{"key": "unspec", "value": "x"}]}]}`
	for _, want := range []int{200, 200, 429} {
		got, body := do("POST", "/json", ask)
		if got != want || !strings.Contains(body, `"requestsPerUnit":2,"unit":"MINUTE"`) {
			t.Errorf("POST /json: %d %s, want %d", got, body, want)
		}
	}
	for _, bad := range []string{"", "{", `{"domain": 7}`, `{"domain": ""}`, `{"domain": "rl"}`, `{"nothing": 1}`} {
		if got, body := do("POST", "/json", bad); got != 400 {
			t.Errorf("POST /json %q: %d %s", bad, got, body)
		}
	}
	if got, _ := do("POST", "/json", strings.Repeat(" ", 300<<10)+ask); got != 413 {
		t.Errorf("a large body: %d", got)
	}
	if got, _ := do("GET", "/json", ""); got != 405 {
		t.Errorf("GET /json: %d", got)
	}
	if got, body := do("GET", "/healthcheck", ""); got != 200 || body != "OK" {
		t.Errorf("/healthcheck: %d %s", got, body)
	}
	_, body := do("GET", "/rlconfig", "")
	for _, line := range []string{
		"rl.foo.baz_shady:unit=MINUTErequests_per_unit=3,shadow_mode:true,quota_mode:false\n",
		"rl.foo.bar_banned:unit=MINUTErequests_per_unit=0,shadow_mode:false,quota_mode:false\n",
		"rl.service_service_1:unit=MINUTErequests_per_unit=1,shadow_mode:false,quota_mode:true\n",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("/rlconfig has no %q:\n%s", line, body)
		}
	}
	s.Drain()
	if got, _ := do("GET", "/healthcheck", ""); got != 500 {
		t.Errorf("/healthcheck while it drains: %d", got)
	}
}

// Headers are off, and on they are about the descriptor that is closest to its limit.
func TestHeaders(t *testing.T) {
	o := inMemory(t, plain)
	s := serve(t, o)
	if out := s.ask(request("d", "five=x")); len(out.ResponseHeadersToAdd) > 0 {
		t.Errorf("%v", out.ResponseHeadersToAdd)
	}
	o.Headers.Limit, o.Headers.Remaining, o.Headers.Reset = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
	s = serve(t, o)
	f := func(want string, descriptors ...string) {
		t.Helper()
		var got []string
		for _, h := range s.ask(request("d", descriptors...)).ResponseHeadersToAdd {
			got = append(got, h.Key+"="+h.Value)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %s, want %s", descriptors, text, want)
		}
	}
	f("", "nobody=x")
	f("RateLimit-Limit=5 RateLimit-Remaining=4 RateLimit-Reset=1770", "five=h")
	f("RateLimit-Limit=2 RateLimit-Remaining=1 RateLimit-Reset=1770", "five=h", "a=h", "nobody=x")
	f("RateLimit-Limit=5 RateLimit-Remaining=0 RateLimit-Reset=1770", "a=h", "five=h hits 9")
}
