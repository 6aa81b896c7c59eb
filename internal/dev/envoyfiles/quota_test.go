package envoyfiles

import (
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	quota "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/config"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/rules/envoy"
)

// What is promised of quotas holds for filters that admit nothing without an assignment, and
// nothing after its end; and the rules can be divided.
func TestQuota(t *testing.T) {
	all := documents(t, "quota.yaml")
	if len(all) != 1 {
		t.Fatalf("%d documents", len(all))
	}
	var b bootstrap.Bootstrap
	decode(t, "quota.yaml", all[0], &b, false)
	m := b.ProtoReflect()
	filters := find[*quota.RateLimitQuotaFilterConfig](t, m)
	buckets := find[*quota.RateLimitQuotaBucketSettings](t, m)
	if len(filters) != 1 || len(buckets) != 2 || filters[0].GetBucketMatchers().GetOnNoMatch() == nil {
		t.Fatalf("%d filters, %d buckets", len(filters), len(buckets))
	}
	c, problems := config.Load(config.Options{File: folder + "tidegate.yaml", Environ: []string{}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	times := ledger.Times{TTL: c.RLS.Quota.TTL, Delivery: c.RLS.Quota.Delivery}
	d := rulesOf(t, filters[0].GetDomain())
	denies := func(s *typev3.RateLimitStrategy) bool {
		return s.GetBlanketRule() == typev3.RateLimitStrategy_DENY_ALL
	}
	for _, s := range buckets {
		expired := s.GetExpiredAssignmentBehavior()
		if !denies(s.GetNoAssignmentBehavior().GetFallbackRateLimit()) || expired.GetReuseLastAssignment() != nil || !denies(expired.GetFallbackRateLimit()) {
			t.Errorf("it does not deny without an assignment: %v", s)
		}
		var entries []envoy.Entry
		for key, value := range s.GetBucketIdBuilder().GetBucketIdBuilder() {
			entries = append(entries, envoy.Entry{Key: key, Value: value.GetStringValue()})
		}
		rule := d.FindAny(entries)
		if rule == nil || len(rule.Limits) != 1 || rule.Limits[0].Algorithm != tidegate.TokenBucket {
			t.Errorf("%v is held to %+v", entries, rule)
			continue
		}
		l := rule.Limits[0]
		if _, err := ledger.NewAhead(ledger.Limit{Events: l.Events, Period: l.Period, Burst: l.Burst}, times); err != nil {
			t.Errorf("%v: %v", entries, err)
		}
	}
}
