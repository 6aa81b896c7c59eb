package grpclimit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// pushback is the trailer by which a server says when to retry, in milliseconds. A negative
// value means not to; see gRFC A6.
const (
	pushback   = "grpc-retry-pushback-ms"
	noPushback = "-1"
)

// refusal is how a call ends that may not pass.
type refusal struct {
	err     error
	trailer metadata.MD
	after   time.Duration // when the same would pass; 0 if never, or nobody knows
}

// refuse returns the refusal of a call that no handler has seen. Clients may retry such a call: the
// trailer says when. If the context of the call has ended, the refusal says that and nothing else.
func (s *Server) refuse(ctx context.Context, d *tidegate.Decision) *refusal {
	if d.Err != nil && ctx.Err() != nil {
		return ended(ctx)
	}
	h := make(http.Header, 4)
	told := s.front.Refusal(h, d)
	r := &refusal{err: explain(told), trailer: toMetadata(h)}
	if d.Err == nil {
		r.after = told.RetryAfter
	}
	r.trailer[pushback] = []string{told.Pushback(s.o.MaxPushback)}
	return r
}

// explain returns the status of a refusal, as an error: its code, what is told to people, and the same
// for programs.
func explain(told httplimit.Refusal) error {
	detail := strings.ToValidUTF8(told.Detail, "\uFFFD")
	plain := status.New(codes.Code(told.GRPCCode), detail)
	var details []protoadapt.MessageV1
	if told.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(told.RetryAfter)})
	}
	if told.Policy != "" {
		details = append(details, &errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{{Subject: told.Policy, Description: detail}},
		})
	}
	full, err := plain.WithDetails(details...)
	if err != nil {
		return plain.Err()
	}
	return full.Err()
}

// describe returns the metadata that tells a client about the limit of an admitted call; nil if
// there was none.
func (s *Server) describe(d *tidegate.Decision) metadata.MD {
	if d.Limit == nil {
		return nil
	}
	h := make(http.Header, 2)
	s.front.Describe(h, d)
	return toMetadata(h)
}

// toMetadata renames the headers in h to lower case, and returns h as metadata.
func toMetadata(h http.Header) metadata.MD {
	rename(h, strings.ToLower)
	return metadata.MD(h)
}
