package xds

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules/envoy"
)

// script is a control plane that sends what it is told to. After each response it waits for
// an answer, unless rush is set.
type script struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	responses chan *discovery.DiscoveryResponse // for every stream that is opened
	requests  chan *discovery.DiscoveryRequest
	rush      bool
	opened    atomic.Int64
}

func (s *script) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	s.opened.Add(1)
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case r, ok := <-s.responses:
			if !ok {
				return nil
			}
			if err := stream.Send(r); err != nil {
				return err
			}
			if s.rush {
				continue
			}
			q, err := stream.Recv()
			if err != nil {
				return err
			}
			s.requests <- q
		}
	}
}

func newScript(t *testing.T) (*script, string) {
	s := &script{responses: make(chan *discovery.DiscoveryResponse), requests: make(chan *discovery.DiscoveryRequest, 100)}
	at := socket(t)
	listen(t, at, nil, func(g *grpc.Server) { discovery.RegisterAggregatedDiscoveryServiceServer(g, s) })
	return s, at
}

func (s *script) answer(t *testing.T) *discovery.DiscoveryRequest {
	t.Helper()
	select {
	case q := <-s.requests:
		return q
	case <-time.After(time.Minute):
		t.Fatal("no answer within a minute")
		return nil
	}
}

func packed(t testing.TB, configs ...proto.Message) (all []*anypb.Any) {
	for _, c := range configs {
		a, err := anypb.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func response(version string, all ...*anypb.Any) *discovery.DiscoveryResponse {
	return &discovery.DiscoveryResponse{VersionInfo: version, Nonce: "n" + version, TypeUrl: configType, Resources: all}
}

// deep nests n descriptors.
func deep(n int) *ratelimit.RateLimitConfig {
	c := config("deep")
	d := &ratelimit.RateLimitDescriptor{Key: "k", RateLimit: limit(1, ratelimit.RateLimitUnit_DAY)}
	for range n - 1 {
		d = &ratelimit.RateLimitDescriptor{Key: "k", Descriptors: []*ratelimit.RateLimitDescriptor{d}}
	}
	c.Descriptors = append(c.Descriptors, d)
	return c
}

// Whatever a server sends, it is told why it is refused, and the previous rules stay in force.
func TestHostileResources(t *testing.T) {
	testdep.SkipUnderRace(t)
	s, at := newScript(t)
	w := follow(t, at, func(o *Options) { o.MaxMessage = 16 << 20 })
	s.responses <- response("0", packed(t, config("a", "k"))...)
	if q := s.answer(t); !acks("0")(q) {
		t.Fatal(q)
	}
	f := func(what, want string, all ...*anypb.Any) {
		t.Helper()
		s.responses <- response("x", all...)
		q := s.answer(t)
		if q.GetErrorDetail() == nil || q.GetVersionInfo() != "0" || q.GetResponseNonce() != "nx" || !strings.Contains(q.GetErrorDetail().GetMessage(), want) {
			t.Errorf("%s: %v", what, q)
		}
		if limited(w.Set(), "a", "k") == "" {
			t.Fatalf("%s: no rules", what)
		}
	}
	value := func(b []byte) *anypb.Any { return &anypb.Any{TypeUrl: configType, Value: b} }
	f("another type", "only `type.googleapis.com/ratelimit", packed(t, durationpb.New(1))...)
	f("no type", "xds:resource 1", &anypb.Any{})
	f("not protobuf", "not a protobuf message", value([]byte{0xff}))
	f("a wrong kind of field", "xds:resource 1", value([]byte{0x1a, 1, 0xff}))
	f("not UTF-8", "UTF-8", value([]byte{0x12, 1, 0xff}))
	f("one of two", "xds:resource 2", packed(t, config("b", "k"), durationpb.New(1))...)
	f("too deep", "30 levels", packed(t, deep(31))...)
	f("far too deep", "30 levels", packed(t, deep(5000))...)
	f("two of a name", "two resources have this name", packed(t, config("b", "k"), config("b", "l"))...)
	f("time to live", "time to live", packed(t, &discovery.Resource{Name: "r", Ttl: durationpb.New(1), Resource: packed(t, config("b", "k"))[0]})...)
	f("an empty resource", "is empty", packed(t, &discovery.Resource{Name: "r"})...)
	f("not a resource", "xds:resource 1", &anypb.Any{TypeUrl: resourceType, Value: []byte{0xff}})
	f("a resource in a resource", "only `type.googleapis.com/ratelimit", packed(t, &discovery.Resource{Resource: packed(t, &discovery.Resource{})[0]})...)
	large := config("large")
	for i := range 20_000 {
		large.Descriptors = append(large.Descriptors, &ratelimit.RateLimitDescriptor{Key: "k", Value: fmt.Sprint(i), RateLimit: limit(1, 1)})
	}
	f("a large domain", "xds:large:1:1", packed(t, large)...)
	var many []*anypb.Any
	for i := range 20 {
		c := config(fmt.Sprintf("d%02d", i))
		for j := range 4000 {
			c.Descriptors = append(c.Descriptors, &ratelimit.RateLimitDescriptor{Key: "k", Value: strings.Repeat("v", 60) + fmt.Sprint(j), RateLimit: limit(1, 1)})
		}
		many = append(many, packed(t, c)...)
	}
	f("many domains", "8 MiB", many...)
	long := config(strings.Repeat("n", 100_000), "k")
	f("a long name", "xds:nnn", packed(t, long)...)

	s.responses <- response("1", packed(t, &discovery.Resource{Name: "c", Resource: packed(t, config("c", "k"))[0]})...)
	if q := s.answer(t); !acks("1")(q) || limited(w.Set(), "c", "k") == "" {
		t.Errorf("a resource with a name: %v", q)
	}
	s.responses <- response("2", packed(t, deep(29))...)
	if q := s.answer(t); !acks("2")(q) || w.Set().Domain("deep") == nil {
		t.Errorf("a deep one: %v", q)
	}
}

// A stream that cannot go on ends, and the next is opened.
func TestHostileStreams(t *testing.T) {
	s, at := newScript(t)
	var said testdep.Output
	w := follow(t, at, func(o *Options) { o.MaxMessage, o.Log = 1<<20, slog.New(slog.NewTextHandler(&said, nil)) })
	s.responses <- response("0", packed(t, config("a", "k"))...)
	s.answer(t)
	f := func(what, want string, r *discovery.DiscoveryResponse) {
		t.Helper()
		n := s.opened.Load()
		s.responses <- r
		testdep.Eventually(t, what, func() bool { return s.opened.Load() > n })
		if told := said.String(); !strings.Contains(told, want) {
			t.Errorf("%s: the log has no %q:\n%s", what, want, told)
		}
		if limited(w.Set(), "a", "k") == "" {
			t.Fatalf("%s: no rules", what)
		}
	}
	f("another type", "was not asked for", &discovery.DiscoveryResponse{TypeUrl: resourceType, Nonce: "n", VersionInfo: "x"})
	f("no type", "was not asked for", &discovery.DiscoveryResponse{})
	f("too long", "larger than max", response("x", &anypb.Any{TypeUrl: configType, Value: make([]byte, 2<<20)}))
	f("too many", "more than", response("x", empty(maxMessages+1)...))
	close(s.responses) // every stream ends at once
	n := s.opened.Load()
	testdep.Eventually(t, "three more streams", func() bool { return s.opened.Load() > n+2 })
	if limited(w.Set(), "a", "k") == "" {
		t.Error("no rules")
	}
}

// empty returns n resources without a type.
func empty(n int) []*anypb.Any {
	all := make([]*anypb.Any, n)
	for i := range all {
		all[i] = &anypb.Any{}
	}
	return all
}

// Objects are not made before it is known how many there will be.
func TestSmallMessagesOfManyAreNotMade(t *testing.T) {
	var b []byte
	for range 2 << 20 { // an empty descriptor is two bytes
		b = protowire.AppendTag(b, 3, protowire.BytesType)
		b = protowire.AppendVarint(b, 0)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := compile([]*anypb.Any{{TypeUrl: configType, Value: b}}, envoy.Options{})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 200000 messages") {
		t.Errorf("%v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes allocated", used)
	}
}

// A server that does not wait for answers is not read faster than it is meant to be, and what
// it sends last is in force in the end.
func TestRushingServer(t *testing.T) {
	s, at := newScript(t)
	s.rush = true
	w := follow(t, at)
	for i := range 200 {
		s.responses <- response(fmt.Sprint(i), packed(t, config("a", fmt.Sprintf("k%d", i)))...)
	}
	testdep.Eventually(t, "the last", func() bool { return limited(w.Set(), "a", "k199") != "" })
}

// A server that is none.
func TestNotAControlPlane(t *testing.T) {
	at := socket(t)
	listen(t, at, nil, func(*grpc.Server) {})
	w := follow(t, at)
	testdep.Eventually(t, "the error", func() bool { return strings.Contains(w.Status().Error, "is this the address of a control plane") })
}
