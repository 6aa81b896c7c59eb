package rls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

// exchangeConfig has rules of every kind of answer; a and user are keys of randomRequest.
const exchangeConfig = `domain: user
descriptors:
  - key: a
    rate_limit: { name: plain, unit: year, requests_per_unit: 3 }
  - key: a
    value: user
    rate_limit: { unlimited: true }
    descriptors:
      - key: user
        rate_limit: { name: deep, replaces: [{ name: plain }], unit: month, requests_per_unit: 5 }
  - key: user
    value: "x*"
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: user
    rate_limit: { unit: year, requests_per_unit: 2 }
    quota_mode: true
`

// frozen is a Server whose counters have a clock that stands still.
func frozen(t testing.TB) *Server {
	t.Helper()
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte(exchangeConfig)}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	store := memory.Open(memory.Config{Now: func() time.Time { return now }})
	s := New(Options{
		Domains: func() *envoy.Set { return set }, Store: store, Near: store,
		Metadata: MetadataOfRequest, Headers: Headers{Limit: "L", Remaining: "R"},
	})
	t.Cleanup(func() { s.Close() })
	return s
}

// exchanged is what a call over gRPC is answered, without a connection.
func exchanged(s *Server, message []byte) (*pb.RateLimitResponse, error) {
	c := newCodec()
	x, err := s.handle(nil, context.Background(), func(v any) error {
		half := len(message) / 2 // as gRPC reads it
		return c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message[:half]), mem.SliceBuffer(message[half:])}, v)
	}, nil)
	if err != nil {
		return nil, err
	}
	data, err := c.Marshal(x)
	if err != nil {
		return nil, err
	}
	out := new(pb.RateLimitResponse)
	return out, proto.Unmarshal(data.Materialize(), out)
}

// sameAnswer compares a call over gRPC with the same one as an object.
func sameAnswer(t *testing.T, wire, object *Server, message []byte) {
	t.Helper()
	var in pb.RateLimitRequest
	if proto.Unmarshal(message, &in) != nil {
		if _, err := exchanged(wire, message); status.Code(err) != codes.InvalidArgument {
			t.Fatalf("a malformed message: %v", err)
		}
		return
	}
	got, errGot := exchanged(wire, message)
	want, errWant := object.ShouldRateLimit(context.Background(), &in)
	if status.Code(errGot) != status.Code(errWant) {
		t.Fatalf("%v:\ngot  %v\nwant %v", &in, errGot, errWant)
	}
	if errGot != nil {
		return
	}
	for _, out := range []*pb.RateLimitResponse{got, want} {
		for _, st := range out.Statuses { // by the wall clock where nothing is used
			if (st.DurationUntilReset == nil) != (st.CurrentLimit == nil) {
				t.Fatalf("%v: %v", &in, st)
			}
			st.DurationUntilReset = nil
		}
	}
	if !proto.Equal(got, want) {
		t.Fatalf("%v:\ngot  %v\nwant %v", &in, got, want)
	}
}

// Calls that are read from and written to the wire are answered like objects, one after the
// other in the same memory.
func TestExchangesAreAnsweredAlike(t *testing.T) {
	wire, object := frozen(t), frozen(t)
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		in := randomRequest(r)
		if r.IntN(4) > 0 {
			in.Domain = "user"
			for _, d := range in.Descriptors {
				if len(d.Entries) == 0 || d.Entries[0].Key == "" {
					d.Entries = []*common.RateLimitDescriptor_Entry{{Key: "a", Value: "x"}}
				}
			}
		}
		message, err := proto.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		sameAnswer(t, wire, object, message)
	}
}

func FuzzExchange(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		in := randomRequest(r)
		in.Domain = "user"
		message, err := proto.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	wire, object := frozen(f), frozen(f)
	f.Fuzz(func(t *testing.T, message []byte) { sameAnswer(t, wire, object, message) })
}

// Calls at the same time do not get each other's answers, though they use memory of calls
// before them.
func TestExchangesAreKeptApart(t *testing.T) {
	const callers, calls = 8, 150
	config := "domain: shop\ndescriptors:\n"
	for i := range callers {
		config += fmt.Sprintf("  - { key: k%d, rate_limit: { name: n%d, unit: year, requests_per_unit: %d } }\n", i, i, 1000+i)
	}
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte(config)}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	s := New(Options{Domains: func() *envoy.Set { return set }, Store: store, Near: store})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for n := range calls {
				if err := askAsCaller(t.Context(), conn, i, n); err != nil {
					t.Errorf("caller %d, call %d: %v", i, n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// askAsCaller makes call n of caller i, with 1 to 40 descriptors of its own values, and looks
// at the limits and the numbers of the answer.
func askAsCaller(ctx context.Context, conn *grpc.ClientConn, i, n int) error {
	in := &pb.RateLimitRequest{Domain: "shop"}
	for j := range 1 + n%40 {
		in.Descriptors = append(in.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{
			{Key: fmt.Sprint("k", i), Value: fmt.Sprintf("caller %d, call %d, descriptor %d", i, n, j)},
		}})
	}
	out, err := pb.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, in)
	if err != nil {
		return err
	}
	if len(out.Statuses) != len(in.Descriptors) {
		return fmt.Errorf("%d statuses for %d descriptors", len(out.Statuses), len(in.Descriptors))
	}
	for _, st := range out.Statuses {
		l := st.CurrentLimit
		if l.GetName() != fmt.Sprint("n", i) || l.GetRequestsPerUnit() != uint32(1000+i) || st.LimitRemaining != uint32(1000+i-1) {
			return fmt.Errorf("%v", st)
		}
	}
	return nil
}

// keeper keeps what it is told, as metrics do.
type keeper struct {
	Stats
	domains, keys []string
}

func (k *keeper) Hits(domain, key string, _ Hits) {
	k.domains, k.keys = append(k.domains, domain), append(k.keys, key)
}
func (k *keeper) Answered(time.Duration) {}

// What metrics are told stays as it was when memory of the call is used again.
func TestMetricsMayKeepWhatTheyAreTold(t *testing.T) {
	var files []envoy.File
	for _, domain := range []string{"shop1", "shop2"} {
		text := "domain: " + domain + "\ndescriptors: [{ key: user, detailed_metric: true, rate_limit: { unit: year, requests_per_unit: 100 } }]\n"
		files = append(files, envoy.File{Name: domain + ".yaml", Text: []byte(text)})
	}
	set, err := envoy.Load(files, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	told, store := new(keeper), memory.New()
	s := New(Options{Domains: func() *envoy.Set { return set }, Store: store, Near: store, Stats: told})
	defer s.Close()
	var want []string
	for i := range 50 {
		domain, user := fmt.Sprint("shop", 1+i%2), fmt.Sprintf("u%03d", i)
		message, err := proto.Marshal(&pb.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: user}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exchanged(s, message); err != nil {
			t.Fatal(err)
		}
		want = append(want, domain+" "+domain+".user_"+user)
	}
	for i := range want {
		if got := told.domains[i] + " " + told.keys[i]; got != want[i] {
			t.Fatalf("call %d: %q, want %q", i, got, want[i])
		}
	}
}

// A message that is not one is the caller's mistake, not an internal error.
func TestMalformedMessages(t *testing.T) {
	s := frozen(t)
	for _, message := range []string{"\xff", "\x0a\x05ab", "\x0a\x02\xff\xfe", "\x12\x03\x0a\x01\x0a", "\x00"} {
		if _, err := exchanged(s, []byte(message)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", message, err)
		}
	}
}

// A message of many empty descriptors makes an error, and no memory that is kept.
func TestExchangesKeepLittle(t *testing.T) {
	s := frozen(t)
	x := &exchange{server: s, received: make([]byte, 0, keptBytes+1)}
	x.release()
	x = &exchange{server: s}
	x.call.keys = make([]byte, 0, keptKeys+1)
	x.answer.room(keptDescriptors + 1)
	x.release()
	for range 10 {
		x := s.exchanges.Get().(*exchange)
		if cap(x.received) > keptBytes || cap(x.call.keys) > keptKeys || cap(x.answer.statuses) > keptDescriptors {
			t.Fatalf("%d bytes, %d of keys, %d statuses", cap(x.received), cap(x.call.keys), cap(x.answer.statuses))
		}
	}
}
