package rls

import (
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Numbers of the fields of a response, and of its parts.
const (
	responseOverall  = 1
	responseStatuses = 2

	statusCode      = 1
	statusLimit     = 2
	statusRemaining = 3
	statusReset     = 4

	toldRequests = 1
	toldUnit     = 2
	toldName     = 3

	durationSeconds = 1
	durationNanos   = 2
)

// encode appends a response as protobuf encodes it. The code and the statuses, of which there may be
// many, are written here; headers for the response and metadata, by package proto. Fields that this
// server never sets are left out.
func encode(to []byte, r *pb.RateLimitResponse) ([]byte, error) {
	to = appendNumber(to, responseOverall, uint64(r.OverallCode))
	for _, s := range r.Statuses {
		to = protowire.AppendTag(to, responseStatuses, protowire.BytesType)
		to = protowire.AppendVarint(to, uint64(sizeStatus(s)))
		to = appendStatus(to, s)
	}
	if r.ResponseHeadersToAdd == nil && r.DynamicMetadata == nil {
		return to, nil
	}
	rest := pb.RateLimitResponse{ResponseHeadersToAdd: r.ResponseHeadersToAdd, DynamicMetadata: r.DynamicMetadata}
	return proto.MarshalOptions{}.MarshalAppend(to, &rest)
}

func sizeStatus(s *pb.RateLimitResponse_DescriptorStatus) int {
	n := sizeNumber(uint64(s.Code)) + sizeNumber(uint64(s.LimitRemaining))
	if s.CurrentLimit != nil {
		n += 1 + protowire.SizeBytes(sizeTold(s.CurrentLimit))
	}
	if d := s.DurationUntilReset; d != nil {
		n += 1 + protowire.SizeBytes(sizeNumber(uint64(d.Seconds))+sizeNumber(uint64(d.Nanos)))
	}
	return n
}

func appendStatus(to []byte, s *pb.RateLimitResponse_DescriptorStatus) []byte {
	to = appendNumber(to, statusCode, uint64(s.Code))
	if l := s.CurrentLimit; l != nil {
		to = protowire.AppendTag(to, statusLimit, protowire.BytesType)
		to = protowire.AppendVarint(to, uint64(sizeTold(l)))
		to = appendNumber(to, toldRequests, uint64(l.RequestsPerUnit))
		to = appendNumber(to, toldUnit, uint64(l.Unit))
		if l.Name != "" {
			to = protowire.AppendTag(to, toldName, protowire.BytesType)
			to = protowire.AppendString(to, l.Name)
		}
	}
	to = appendNumber(to, statusRemaining, uint64(s.LimitRemaining))
	if d := s.DurationUntilReset; d != nil {
		to = protowire.AppendTag(to, statusReset, protowire.BytesType)
		to = protowire.AppendVarint(to, uint64(sizeNumber(uint64(d.Seconds))+sizeNumber(uint64(d.Nanos))))
		to = appendNumber(to, durationSeconds, uint64(d.Seconds))
		to = appendNumber(to, durationNanos, uint64(d.Nanos))
	}
	return to
}

func sizeTold(l *pb.RateLimitResponse_RateLimit) int {
	n := sizeNumber(uint64(l.RequestsPerUnit)) + sizeNumber(uint64(l.Unit))
	if l.Name != "" {
		n += 1 + protowire.SizeBytes(len(l.Name))
	}
	return n
}

// sizeNumber returns how many bytes a varint field takes whose tag takes one byte; 0 if its value is 0,
// as it is then left out.
func sizeNumber(value uint64) int {
	if value == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(value)
}

func appendNumber(to []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return to
	}
	to = protowire.AppendTag(to, number, protowire.VarintType)
	return protowire.AppendVarint(to, value)
}
