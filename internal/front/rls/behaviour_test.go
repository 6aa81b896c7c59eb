package rls_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
)

const plain = `
domain: d
descriptors:
  - { key: five, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: shadowed, rate_limit: { unit: hour, requests_per_unit: 5 }, shadow_mode: true }
  - { key: a, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: a_b, rate_limit: { unit: hour, requests_per_unit: 2 } }
  - { key: named, rate_limit: { name: a name, unit: day, requests_per_unit: 7 } }
`

// Hits of a call, hits of a descriptor, looking only, and giving back.
func TestHits(t *testing.T) { hits(t, serve(t, inMemory(t, plain))) }

func hits(t *testing.T, s *service) {
	t.Helper()
	s.want("OK | OK 4 of 5/hour", "d", "five=x")
	r := request("d", "five=x")
	r.HitsAddend = 2
	if got := told(s.ask(r)); got != "OK | OK 2 of 5/hour" {
		t.Errorf("2 hits of the call: %s", got)
	}
	s.want("OK | OK 2 of 5/hour", "d", "five=x hits 0")
	s.want("OK | OK 2 of 5/hour", "d", "five=x hits 0")
	s.want("OK | OK 1 of 5/hour", "d", "five=x hits 1")
	r = request("d", "five=x hits 0", "five=y")
	r.HitsAddend = 3 // for those that have none of their own
	if got := told(s.ask(r)); got != "OK | OK 1 of 5/hour | OK 2 of 5/hour" {
		t.Errorf("hits of both: %s", got)
	}
	s.want("OK | OK 0 of 5/hour", "d", "five=x")
	s.want("OK | OK 0 of 5/hour", "d", "five=x hits 0") // full, and not over
	s.want("OVER | OVER 0 of 5/hour", "d", "five=x")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=x hits 0")
	s.want("OK | OK 1 of 5/hour", "d", "five=x back 2") // of 6 that were counted
	s.want("OK | OK 0 of 5/hour", "d", "five=x")
	s.want("OK | OK 5 of 5/hour", "d", "five=x back 100")
	s.want("OK | OK 5 of 5/hour", "d", "five=never back 3")
	s.want("OK | OK 5 of 5/hour", "d", "five=never hits 0")
}

// Refused hits count, as envoyproxy/ratelimit has it, and each descriptor is charged by itself.
func TestRefusedHitsCount(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	s.want("OVER | OVER 0 of 5/hour", "d", "five=x hits 10")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=x")
	s.want("OK | OK 1 of 5/hour", "d", "five=y hits 4")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=y hits 2")
	s.want("OVER | OVER 0 of 5/hour", "d", "five=y")
	for range 10 {
		s.ask(request("d", "five=z"))
	}
	s.want("OK | OK 0 of 5/hour", "d", "five=z back 3") // of 10 that were counted
	s.want("OVER | OVER 0 of 5/hour", "d", "five=z")
	s.want("OK | OK 2 of 5/hour", "d", "five=z back 5")
	for _, hits := range []string{"1000000000000", fmt.Sprint(uint64(math.MaxUint64))} {
		s.want("OVER | OVER 0 of 5/hour", "d", "five="+hits+" hits "+hits)
		s.want("OVER | OVER 0 of 5/hour", "d", "five="+hits)
	}
	s.want("OK | OK 1 of 2/hour", "d", "a=p")
	s.want("OVER | OK 0 of 2/hour | OVER 0 of 5/hour", "d", "a=p", "five=x")
	s.want("OVER | OVER 0 of 2/hour", "d", "a=p")
}

// Shadow mode never refuses, and says what is left.
func TestShadow(t *testing.T) {
	o := inMemory(t, plain)
	var over atomic.Int64
	o.Shadowed = func(_ *tidegate.Limit, is bool) {
		if is {
			over.Add(1)
		}
	}
	s := serve(t, o)
	if got := s.codes(8, "d", "shadowed=x"); got != strings.TrimSpace(strings.Repeat("OK ", 8)) {
		t.Errorf("answered %s", got)
	}
	s.want("OK | OK 0 of 5/hour", "d", "shadowed=x")
	s.want("OVER | OK 0 of 5/hour | OVER 0 of 5/hour", "d", "shadowed=x", "five=x hits 9")
	if n := over.Load(); n != 5 {
		t.Errorf("%d would have been refused, want 5", n)
	}
}

// A server in shadow mode refuses no call.
func TestShadowOfAll(t *testing.T) {
	o := inMemory(t, plain)
	o.Shadow = true
	s := serve(t, o)
	s.want("OK | OVER 0 of 5/hour", "d", "five=x hits 9")
}

// Keys that would be the same if they were joined have counters of their own.
func TestKeysDoNotCollide(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	if got := s.codes(3, "d", "a=b_X"); got != "OK OK OVER" {
		t.Errorf("a=b_X: %s", got)
	}
	if got := s.codes(3, "d", "a_b=X"); got != "OK OK OVER" {
		t.Errorf("a_b=X: %s", got)
	}
}

// Limits in requests win over those of files, whatever the unit; what is not a unit is an error,
// and the process goes on.
func TestOverrides(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	with := func(descriptor string, requests uint32, unit int32) *pb.RateLimitRequest {
		r := request("d", descriptor)
		r.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: typev3.RateLimitUnit(unit)}
		return r
	}
	for unit, name := range typev3.RateLimitUnit_name {
		if name == "UNKNOWN" {
			continue
		}
		for _, descriptor := range []string{"five=" + name, "shadowed=" + name, "unknown=" + name, "deep=a, deeper=" + name} {
			want := strings.ToLower(name)
			for _, line := range []string{"OK | OK 1 of 2/" + want, "OK | OK 0 of 2/" + want, "OVER | OVER 0 of 2/" + want} {
				if got := told(s.ask(with(descriptor, 2, unit))); got != line {
					t.Errorf("%s with 2 per %s: %s, want %s", descriptor, want, got, line)
				}
			}
			// What a lower limit refused, a higher one has room for.
			if got, want := told(s.ask(with(descriptor, 10, unit))), "OK | OK 6 of 10/"+want; got != want {
				t.Errorf("%s with 10: %s, want %s", descriptor, got, want)
			}
			if got, want := told(s.ask(with(descriptor, 0, unit))), "OVER | OVER 0 of 0/"+want; got != want {
				t.Errorf("%s with 0: %s, want %s", descriptor, got, want)
			}
			if got, want := told(s.ask(with(descriptor+"!", math.MaxUint32, unit))), "of 4294967295/"+want; !strings.HasPrefix(got, "OK") || !strings.HasSuffix(got, want) {
				t.Errorf("%s with all: %s, want %s", descriptor, got, want)
			}
		}
	}
	s.want("OK | OK 4 of 5/hour", "d", "five=HOUR") // the file's counter is another one
	for _, unit := range []int32{0, 8, 99, 255, 256, 257, 258, 65537, -1, math.MinInt32, math.MaxInt32} {
		if _, err := s.client.ShouldRateLimit(context.Background(), with("five=x", 2, unit)); status.Code(err) != codes.InvalidArgument {
			t.Errorf("unit %d: %v", unit, err)
		}
	}
	s.want("OK | OK 0", "unknown domain", "five=x")
}

// What makes no sense is refused before anything is charged.
func TestBadRequests(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	long := strings.Repeat("x", 33<<10)
	many := make([]string, 257)
	for i := range many {
		many[i] = "five=x"
	}
	entries := strings.Repeat("k=v, ", 64) + "k=v"
	f := func(why string, code codes.Code, r *pb.RateLimitRequest) {
		t.Helper()
		if _, err := s.client.ShouldRateLimit(context.Background(), r); status.Code(err) != code {
			t.Errorf("%s: %v, want %v", why, err, code)
		}
	}
	f("nothing", codes.InvalidArgument, &pb.RateLimitRequest{})
	f("no domain", codes.InvalidArgument, request("", "five=x"))
	f("no descriptors", codes.InvalidArgument, request("d"))
	f("an empty descriptor", codes.InvalidArgument, &pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{}}})
	f("an empty descriptor behind a good one", codes.InvalidArgument, &pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{descriptorOf("five=x"), {}}})
	f("an empty key", codes.InvalidArgument, request("d", "=x"))
	f("an empty key behind others", codes.InvalidArgument, request("d", "five=x", "a=b, =x"))
	f("a long key", codes.InvalidArgument, request("d", long+"=x"))
	f("a long value", codes.InvalidArgument, request("d", "five=x", "five="+long))
	f("a long domain", codes.InvalidArgument, request(long, "five=x"))
	f("many descriptors", codes.InvalidArgument, request("d", many...))
	f("many entries", codes.InvalidArgument, request("d", "five=x", entries))
	f("a large message", codes.ResourceExhausted, request("d", strings.Repeat("five="+long+", ", 20)))
	s.want("OK | OK 4 of 5/hour", "d", "five=x")
	s.want("OK | OK 4 of 5/hour", "d", "five=") // a value may be empty
	s.want("OK | OK 4 of 5/hour", "d", "five="+long[:32<<10])
	s.want("OK | OK 4 of 5/hour", "d", "five="+long[:32<<10-1])
}

// As many descriptors as there may be are answered, in order, the same key in each.
func TestManyDescriptors(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	many := make([]string, 256)
	for i := range many {
		many[i] = "five=x"
	}
	out := s.ask(request("d", many...))
	for i, st := range out.Statuses {
		want := pb.RateLimitResponse_OVER_LIMIT
		if i < 5 {
			want = pb.RateLimitResponse_OK
		}
		if st.Code != want {
			t.Fatalf("descriptor %d: %v", i, st)
		}
	}
}

// Resets are whole seconds and never too early.
func TestReset(t *testing.T) {
	s := serve(t, inMemory(t, plain))
	for _, descriptor := range []string{"five=x hits 0", "five=x", "five=x hits 9"} {
		st := s.ask(request("d", descriptor)).Statuses[0]
		got := st.GetDurationUntilReset()
		if descriptor == "five=x hits 0" { // by the clock of the process: nothing is counted yet
			if got.GetSeconds() < 1 || got.GetSeconds() > 3600 {
				t.Errorf("%s: %v", descriptor, got)
			}
			continue
		}
		if got.GetSeconds() != 29*60+30 || got.GetNanos() != 0 { // from 12:30:30.5
			t.Errorf("%s: %v", descriptor, got)
		}
	}
	if st := s.ask(request("d", "nobody=x")).Statuses[0]; st.DurationUntilReset != nil || st.CurrentLimit != nil {
		t.Errorf("without a limit: %v", st)
	}
}
