package rls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rls"
)

// While Redis stands still, limits hold by the counters of this instance: of every algorithm, by
// themselves and with others, and those that requests bring along.
func TestLimitsHoldWithoutRedis(t *testing.T) {
	server := testdep.Redis(t)
	for _, algorithm := range algorithms {
		for _, atomic := range []bool{false, true} {
			t.Run(fmt.Sprint(algorithm, atomic), func(t *testing.T) {
				config := atomicOf("month", algorithm)
				if !atomic {
					config = strings.Replace(config, "tidegate: { atomic: true }\n", "", 1)
				}
				s, _ := onRedis(t, server, config, 0)
				defer server.Resume()
				server.Pause()
				who := fmt.Sprint(algorithm, atomic)
				four, own := request("d", "four="+who), request("d", "any="+who)
				own.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 4, Unit: typev3.RateLimitUnit_MONTH}
				for name, r := range map[string]*pb.RateLimitRequest{"one": four, "two": request("d", "ten="+who, "four=with"+who), "a limit of the request": own} {
					if n := admitted(t, s.Server, r, 12); n < 1 || n > 4 {
						t.Errorf("%s: %d of 12 calls were admitted, of 4 in a month", name, n)
					}
				}
			})
		}
	}
}

// admitted asks n times and returns how often the answer was OK.
func admitted(t *testing.T, s *rls.Server, r *pb.RateLimitRequest, n int) (ok int) {
	t.Helper()
	for range n {
		out, err := s.ShouldRateLimit(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if out.OverallCode == pb.RateLimitResponse_OK {
			ok++
		}
	}
	return ok
}
