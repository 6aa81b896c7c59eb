package rlqs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/rules/envoy"
)

const kinds = `
domain: shop
descriptors:
  - key: bucket
    rate_limit: { unit: second, requests_per_unit: 1000, tidegate: { algorithm: token_bucket, burst: 1000 } }
  - key: low
    rate_limit: { unit: minute, requests_per_unit: 10, tidegate: { algorithm: token_bucket, burst: 10 } }
  - key: window
    rate_limit: { unit: second, requests_per_unit: 1000 }
  - key: several
    rate_limit: { tidegate: { limits: [1000/second, 10000/minute] } }
  - key: split
    rate_limit: { unit: second, requests_per_unit: 1000, tidegate: { algorithm: token_bucket, consistency: split } }
  - key: none
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: free
    rate_limit: { unlimited: true }
  - key: tried
    shadow_mode: true
    rate_limit: { unit: second, requests_per_unit: 1000, tidegate: { algorithm: token_bucket } }
  - key: tenant
    descriptors:
      - key: path
        rate_limit: { unit: second, requests_per_unit: 100, tidegate: { algorithm: token_bucket } }
`

func load(t testing.TB, config string) *envoy.Set {
	t.Helper()
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte(config)}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// start returns a server that runs until the test ends.
func start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Domains == nil {
		set := load(t, kinds)
		o.Domains = func() *envoy.Set { return set }
	}
	s := New(o)
	t.Cleanup(func() { s.Close() })
	return s
}

// openStream opens a stream.
func openStream(t testing.TB, s *Server) *stream {
	t.Helper()
	st := &stream{subs: make(map[string]*subscription), outbox: newOutbox(&s.waiting)}
	if !s.open(st) {
		t.Fatal("there are too many streams")
	}
	return st
}

// id reads "key=value, key=value".
func id(text string) map[string]string {
	m := make(map[string]string)
	for part := range strings.SplitSeq(text, ", ") {
		key, value, _ := strings.Cut(part, "=")
		m[key] = value
	}
	return m
}

// report tells of requests in a bucket.
func report(t testing.TB, s *Server, st *stream, bucket string, allowed, denied uint64) {
	t.Helper()
	in := &pb.RateLimitQuotaUsageReports{Domain: "shop", BucketQuotaUsages: []*pb.RateLimitQuotaUsageReports_BucketQuotaUsage{
		{BucketId: &pb.BucketId{Bucket: id(bucket)}, NumRequestsAllowed: allowed, NumRequestsDenied: denied},
	}}
	if err := s.reported(t.Context(), st, in); err != nil {
		t.Fatalf("%s: %v", bucket, err)
	}
}

// told returns what a stream is told, a line for each word.
func (s *Server) told(t testing.TB, st *stream) string {
	t.Helper()
	var lines []string
	for {
		m, lost := st.outbox.take(s.now(), s.o.Times)
		s.lost(st, lost)
		if m == nil {
			return strings.Join(lines, "\n")
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, a := range m.BucketAction {
			lines = append(lines, wordOf(t, a, s.o.Times.TTL))
		}
	}
}

// read reads for a while, as often as assignments are decided.
func (s *Server) read(t testing.TB, st *stream, long time.Duration) (all []string) {
	t.Helper()
	tick := s.o.Times.Renewal() / 4
	for range long / tick {
		time.Sleep(tick)
		synctest.Wait()
		if got := s.told(t, st); got != "" {
			all = append(all, got)
		}
	}
	return all
}

func wordOf(t testing.TB, a *pb.RateLimitQuotaResponse_BucketAction, ttl time.Duration) string {
	t.Helper()
	if a.GetAbandonAction() != nil {
		return "abandon"
	}
	q := a.GetQuotaAssignmentAction()
	if got := q.GetAssignmentTimeToLive(); got == nil || got.AsDuration() != ttl {
		t.Fatalf("a time to live of %v", got)
	}
	switch s := q.GetRateLimitStrategy().GetStrategy().(type) {
	case *typev3.RateLimitStrategy_BlanketRule_:
		return s.BlanketRule.String()
	case *typev3.RateLimitStrategy_TokenBucket:
		b := s.TokenBucket
		if b.FillInterval.Nanos != 0 || b.FillInterval.Seconds < 1 {
			t.Fatalf("Envoy reads whole seconds, and this is %v", b.FillInterval)
		}
		return fmt.Sprintf("%d, %d in %ds", b.MaxTokens, b.TokensPerFill.Value, b.FillInterval.Seconds)
	}
	t.Fatalf("told %v", a)
	return ""
}

var short = ledger.Times{TTL: 300 * time.Millisecond, Delivery: 100 * time.Millisecond}

func mustName(t testing.TB, bucket string) string {
	t.Helper()
	_, name, ok := entriesOf(id(bucket))
	if !ok {
		t.Fatal("it is too long")
	}
	return name
}
