package grpclimit

import (
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// retryTime returns for how long the server wants a client to wait before it repeats a refused
// call, the longest that trailer and details say, and false if the call is not to be repeated. A
// pushback that is negative or malformed forbids it. RESOURCE_EXHAUSTED is repeated only if there is a
// pushback or a time above 0, UNAVAILABLE only if there is a pushback: nothing else says that no
// handler has seen the call.
func retryTime(refused error, trailer metadata.MD) (time.Duration, bool) {
	st := status.Convert(refused)
	if st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable {
		return 0, false
	}
	var wait time.Duration
	told := trailer[pushback]
	switch len(told) {
	case 0:
		if st.Code() == codes.Unavailable {
			return 0, false
		}
	case 1:
		ms, err := strconv.ParseInt(told[0], 10, 64)
		if err != nil || ms < 0 {
			return 0, false
		}
		wait = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	default:
		return 0, false
	}
	after := max(retryDelay(st), retryAfter(trailer))
	return max(wait, after), len(told) == 1 || after > 0
}

// retryAfter returns the seconds that retry-after of the trailer says, as HTTP proxies and middleware write it; 0 if there
// is none, more than one, or a date.
func retryAfter(trailer metadata.MD) time.Duration {
	told := trailer["retry-after"]
	if len(told) != 1 {
		return 0
	}
	seconds, err := strconv.ParseUint(told[0], 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// retryDelay returns the delay of RetryInfo in the details of a status; 0 if there is none.
func retryDelay(st *status.Status) time.Duration {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// Idempotent reports whether the definition of a method, as in "/shop.v1.Orders/Get", has an
// idempotency_level: NO_SIDE_EFFECTS or IDEMPOTENT. Methods that are not linked into the
// program are not.
func Idempotent(method string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	defined, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return false
	}
	options, ok := defined.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}
