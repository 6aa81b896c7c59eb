package rls

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

func randomResponse(r *rand.Rand) *pb.RateLimitResponse {
	number := func() uint64 { return []uint64{0, 1, 127, 128, 1 << 20, math.MaxUint32}[r.IntN(6)] }
	out := &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_Code(r.IntN(3))}
	for range r.IntN(25) {
		s := &pb.RateLimitResponse_DescriptorStatus{Code: pb.RateLimitResponse_Code(r.IntN(3)), LimitRemaining: uint32(number())}
		if r.IntN(3) > 0 {
			name := []string{"", "burst", strings.Repeat("n", 200), "имя"}[r.IntN(4)]
			s.CurrentLimit = &pb.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(number()), Unit: pb.RateLimitResponse_RateLimit_Unit(r.IntN(9) - 1), Name: name}
		}
		if r.IntN(3) > 0 {
			s.DurationUntilReset = &durationpb.Duration{Seconds: int64(number()) * int64(r.IntN(3)-1), Nanos: int32(r.IntN(3) - 1)}
		}
		out.Statuses = append(out.Statuses, s)
	}
	if r.IntN(4) == 0 {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &core.HeaderValue{Key: "RateLimit-Limit", Value: "10"}, &core.HeaderValue{Key: "RateLimit-Reset", Value: "3"})
	}
	if r.IntN(4) == 0 {
		out.DynamicMetadata, _ = structpb.NewStruct(map[string]any{"tier": "gold", "weights": []any{1.5, true, nil}})
	}
	return out
}

// What is encoded is read by protobuf as what it was.
func TestEncodeForProtobuf(t *testing.T) {
	testdep.SkipUnderRace(t)
	r := rand.New(rand.NewPCG(5, 6))
	var b []byte
	for range 3000 {
		want := randomResponse(r)
		var err error
		if b, err = encode(b[:0], want); err != nil {
			t.Fatal(err)
		}
		var got pb.RateLimitResponse
		if err := proto.Unmarshal(b, &got); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("%v\ngot  %v\nwant %v", err, &got, want)
		}
		if n := proto.Size(want); n != len(b) {
			t.Fatalf("%d bytes, protobuf takes %d", len(b), n)
		}
	}
}
