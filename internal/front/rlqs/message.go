package rlqs

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
	"tidegate.dev/tidegate/rules/envoy"
)

// invalid returns the error for a message that makes no sense. It ends the stream.
func invalid(format string, args ...any) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf(format, args...))
}

// check returns what is wrong with a message; nil if nothing is. domain is that of the stream, "" before
// its first message.
func check(in *pb.RateLimitQuotaUsageReports, domain string) error {
	switch {
	case in.GetDomain() == "" && domain == "":
		return invalid("the domain is empty")
	case len(in.GetDomain()) > MaxDomain:
		return invalid("the domain has %d bytes, of at most %d", len(in.GetDomain()), MaxDomain)
	case in.GetDomain() != "" && domain != "" && in.GetDomain() != domain:
		return invalid("the domain of this stream is another one: open a stream for each")
	}
	for i, u := range in.GetBucketQuotaUsages() {
		id := u.GetBucketId().GetBucket()
		if len(id) == 0 {
			return invalid("report %d has no bucket id", i)
		}
		if _, ok := id[""]; ok {
			return invalid("the bucket id of report %d has an entry without a key", i)
		}
	}
	return nil
}

// entriesOf returns the entries of a bucket id, sorted by key, and a name that no other entries have.
// fits is false if there are too many entries, or they are too long.
func entriesOf(id map[string]string) (entries []envoy.Entry, name string, fits bool) {
	if len(id) > MaxEntries {
		return nil, "", false
	}
	size := 0
	for key, value := range id {
		size += len(key) + len(value)
	}
	if size > MaxID {
		return nil, "", false
	}
	b := make([]byte, 0, size+4*len(id))
	for _, key := range slices.Sorted(maps.Keys(id)) {
		entries = append(entries, envoy.Entry{Key: key, Value: id[key]})
		for _, text := range []string{key, id[key]} {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
	}
	return entries, string(b), true
}

// requests returns how many requests of a report are counted.
func requests(allowed, denied uint64) uint64 {
	return min(allowed, maxReported) + min(denied, maxReported)
}

var (
	denyAll  = blanket(typev3.RateLimitStrategy_DENY_ALL)
	allowAll = blanket(typev3.RateLimitStrategy_ALLOW_ALL)
)

// blanket returns a strategy that treats all requests alike.
func blanket(rule typev3.RateLimitStrategy_BlanketRule) *typev3.RateLimitStrategy {
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_BlanketRule_{BlanketRule: rule}}
}

// strategyOf returns a strategy as the protocol has it.
func strategyOf(s ledger.Strategy) *typev3.RateLimitStrategy {
	if s.Denies() {
		return denyAll
	}
	return &typev3.RateLimitStrategy{Strategy: &typev3.RateLimitStrategy_TokenBucket{TokenBucket: &typev3.TokenBucket{
		MaxTokens:     uint32(s.Max),
		TokensPerFill: wrapperspb.UInt32(uint32(s.Fill)),
		FillInterval:  durationpb.New(s.Interval),
	}}}
}

// assign returns the action that assigns a strategy to a bucket for ttl.
func assign(id *pb.BucketId, s *typev3.RateLimitStrategy, ttl time.Duration) *pb.RateLimitQuotaResponse_BucketAction {
	return &pb.RateLimitQuotaResponse_BucketAction{
		BucketId: id,
		BucketAction: &pb.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction_{
			QuotaAssignmentAction: &pb.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction{
				AssignmentTimeToLive: durationpb.New(ttl),
				RateLimitStrategy:    s,
			},
		},
	}
}

// abandon returns the action by which Envoy forgets a bucket.
func abandon(id *pb.BucketId) *pb.RateLimitQuotaResponse_BucketAction {
	return &pb.RateLimitQuotaResponse_BucketAction{
		BucketId: id,
		BucketAction: &pb.RateLimitQuotaResponse_BucketAction_AbandonAction_{
			AbandonAction: &pb.RateLimitQuotaResponse_BucketAction_AbandonAction{},
		},
	}
}
