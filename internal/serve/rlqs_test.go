//go:build unix

package serve

import (
	"strings"
	"testing"
	"time"

	quotapb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

const rlqsRules = `
domain: d
descriptors:
  - { key: bucket, rate_limit: { unit: second, requests_per_unit: 100, tidegate: { algorithm: token_bucket, burst: 600 } } }
  - { key: window, rate_limit: { unit: second, requests_per_unit: 100 } }
`

// The quota service is where the rate limit service is, on both stores: buckets are assigned, in
// whole seconds, again and again, and what proxies report is in the metrics.
func TestRLQS(t *testing.T) {
	for _, store := range []string{"memory", "redis"} {
		t.Run(store, func(t *testing.T) {
			w := newSandbox(t, testdep.Command(t))
			w.write("rules.yaml", rlqsRules)
			args := append(rlsAny, "--rules=rules.yaml", "--drain=10s")
			if store == "redis" {
				args = append(args, "--store.redis=redis://"+testdep.Redis(t).Addr, patientStore)
			}
			s := w.serve("", nil, args...)
			addr, _, admin := s.rlsReady()
			_, conn := envoyClient(t, addr)
			stream, err := quotapb.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			report := func(key string, allowed, denied uint64) {
				t.Helper()
				if err := stream.Send(&quotapb.RateLimitQuotaUsageReports{Domain: "d", BucketQuotaUsages: []*quotapb.RateLimitQuotaUsageReports_BucketQuotaUsage{{
					BucketId: &quotapb.BucketId{Bucket: map[string]string{key: "x"}}, NumRequestsAllowed: allowed, NumRequestsDenied: denied,
				}}}); err != nil {
					t.Fatal(err)
				}
			}
			report("bucket", 0, 1)
			report("window", 0, 1)
			buckets, denied := 0, 0
			for buckets < 3 || denied < 3 {
				m, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range m.BucketAction {
					q := a.GetQuotaAssignmentAction()
					if q.GetAssignmentTimeToLive().AsDuration() != 2*time.Second {
						t.Fatalf("%v", a)
					}
					if b := q.GetRateLimitStrategy().GetTokenBucket(); b == nil {
						denied++
					} else if buckets++; b.GetFillInterval().AsDuration() != time.Second || b.GetTokensPerFill().GetValue() < 20 || b.GetTokensPerFill().GetValue() > 100 {
						t.Errorf("assigned %v", b)
					}
				}
			}
			report("bucket", 7, 3)
			w.until("the report is counted", func() bool {
				_, page := w.get(once, admin+"/metrics")
				return strings.Contains(page, `tidegate_requests_total{door="rlqs",outcome="ok"} 7`) &&
					strings.Contains(page, `tidegate_decisions_total{outcome="refused",rule="d.bucket"} 4`) &&
					strings.Contains(page, "tidegate_rlqs_streams 1") && strings.Contains(page, "tidegate_rlqs_buckets 2") && strings.Contains(page, "tidegate_rlqs_counters 1")
			})
			if line := s.await(1, "the quota service cannot divide the limit of a rule, and denies what it limits"); line["rule"] != "d.window" {
				t.Errorf("the log says %v", line)
			}
		})
	}
}
