package rls_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"tidegate.dev/tidegate/internal/front/rls"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

// service is a Server on a socket, and a client of it.
type service struct {
	testing.TB
	*rls.Server
	addr   string
	client pb.RateLimitServiceClient
	conn   *grpc.ClientConn
}

// domains loads a configuration.
func domains(t testing.TB, config string) func() *envoy.Set {
	t.Helper()
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte(config)}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func() *envoy.Set { return set }
}

// noon is the clock of stores in tests, in the middle of every window.
var noon = time.Date(2026, 7, 15, 12, 30, 30, 500_000_000, time.UTC)

// inMemory are options with counters of their own, whose time stands still.
func inMemory(t testing.TB, config string) rls.Options {
	t.Helper()
	store := memory.Open(memory.Config{Now: func() time.Time { return noon }})
	return rls.Options{Domains: domains(t, config), Store: store, Near: store}
}

// serve starts a service.
func serve(t testing.TB, o rls.Options) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := rls.New(o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	addr := l.Addr().String()
	conn := dial(t, addr)
	return &service{t, s, addr, pb.NewRateLimitServiceClient(conn), conn}
}

// dial connects without TLS.
func dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// descriptor reads "key=value, key=value", and behind that, if wanted, " hits N" or " back N".
func descriptorOf(text string) *common.RateLimitDescriptor {
	d := new(common.RateLimitDescriptor)
	if rest, hits, ok := strings.Cut(text, " hits "); ok {
		n, _ := strconv.ParseUint(hits, 10, 64)
		text, d.HitsAddend = rest, wrapperspb.UInt64(n)
	}
	if rest, hits, ok := strings.Cut(text, " back "); ok {
		n, _ := strconv.ParseUint(hits, 10, 64)
		text, d.HitsAddend, d.IsNegativeHits = rest, wrapperspb.UInt64(n), true
	}
	for part := range strings.SplitSeq(text, ", ") {
		key, value, _ := strings.Cut(part, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

// request is about descriptors, each written as descriptorOf reads it.
func request(domain string, descriptors ...string) *pb.RateLimitRequest {
	r := &pb.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		r.Descriptors = append(r.Descriptors, descriptorOf(text))
	}
	return r
}

// ask asks and fails the test without an answer.
func (s *service) ask(r *pb.RateLimitRequest) *pb.RateLimitResponse {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := s.client.ShouldRateLimit(ctx, r)
	if err != nil {
		s.Fatalf("%v: %v", r, err)
	}
	if len(out.Statuses) != len(r.Descriptors) {
		s.Fatalf("%d statuses for %d descriptors", len(out.Statuses), len(r.Descriptors))
	}
	return out
}

// told is a response in a line: the overall code, then for each descriptor its code, what
// remains, and its limit.
func told(out *pb.RateLimitResponse) string {
	var b strings.Builder
	b.WriteString(code(out.OverallCode))
	for _, st := range out.Statuses {
		b.WriteString(" | " + code(st.Code) + " " + strconv.FormatUint(uint64(st.LimitRemaining), 10))
		if l := st.CurrentLimit; l != nil {
			b.WriteString(" of " + strconv.FormatUint(uint64(l.RequestsPerUnit), 10) + "/" + strings.ToLower(l.Unit.String()))
			if l.Name != "" {
				b.WriteString(" " + l.Name)
			}
		}
	}
	return b.String()
}

func code(c pb.RateLimitResponse_Code) string {
	if c == pb.RateLimitResponse_OVER_LIMIT {
		return "OVER"
	}
	return c.String()
}

// want asks and compares.
func (s *service) want(want string, domain string, descriptors ...string) {
	s.Helper()
	if got := told(s.ask(request(domain, descriptors...))); got != want {
		s.Errorf("%s %q:\n got %s\nwant %s", domain, descriptors, got, want)
	}
}

// codes asks n times and returns the overall codes.
func (s *service) codes(n int, domain string, descriptors ...string) string {
	s.Helper()
	var all []string
	for range n {
		all = append(all, code(s.ask(request(domain, descriptors...)).OverallCode))
	}
	return strings.Join(all, " ")
}
