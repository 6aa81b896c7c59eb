package grpclimit

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
)

func refusedWith(t *testing.T, code codes.Code, delay time.Duration) error {
	t.Helper()
	st := status.New(code, "refused")
	if delay != 0 {
		var err error
		if st, err = st.WithDetails(&errdetails.QuotaFailure{}, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}); err != nil {
			t.Fatal(err)
		}
	}
	return st.Err()
}

func TestRetryTime(t *testing.T) {
	const never = -1
	f := func(code codes.Code, delay time.Duration, told []string, want time.Duration) {
		t.Helper()
		got, ok := retryTime(refusedWith(t, code, delay), metadata.MD{pushback: told})
		if !ok {
			got = never
		}
		if got != want {
			t.Errorf("%s, %s, %q: %s, want %s", code, delay, told, got, want)
		}
	}
	f(codes.ResourceExhausted, 0, nil, never)
	f(codes.ResourceExhausted, time.Second, nil, time.Second)
	f(codes.ResourceExhausted, 0, []string{"0"}, 0)
	f(codes.ResourceExhausted, 0, []string{"1500"}, 1500*time.Millisecond)
	f(codes.ResourceExhausted, time.Second, []string{"1500"}, 1500*time.Millisecond)
	f(codes.ResourceExhausted, 2*time.Second, []string{"1500"}, 2*time.Second)
	f(codes.ResourceExhausted, -time.Second, nil, never)
	f(codes.ResourceExhausted, 0, []string{"9223372036854775807"}, math.MaxInt64/time.Millisecond*time.Millisecond)
	for _, told := range [][]string{{"-1"}, {"x"}, {""}, {"1.5"}, {"9223372036854775808"}, {"1", "1"}} {
		f(codes.ResourceExhausted, time.Second, told, never)
	}
	f(codes.Unavailable, time.Second, nil, never)
	f(codes.Unavailable, time.Second, []string{"1"}, time.Second)
	for code := range codes.Code(17) {
		if code != codes.OK && code != codes.ResourceExhausted && code != codes.Unavailable {
			f(code, time.Second, []string{"1"}, never)
		}
	}
	for told, want := range map[string]time.Duration{"3": 3 * time.Second, "0": 0, "-1": 0, "x": 0, "99999999999": 0} {
		if got, ok := retryTime(refusedWith(t, codes.ResourceExhausted, 0), metadata.Pairs("retry-after", told)); got != want || ok != (want > 0) {
			t.Errorf("retry-after %s: %s, %t", told, got, ok)
		}
	}
	if _, ok := retryTime(errors.New("no status"), nil); ok {
		t.Error("an error without a status is to be repeated")
	}
}

// The wait is never shorter than told, and longer by the jitter at most.
func TestJitterIsUpward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const told, jitter = 10 * time.Second, 0.5
		c := NewClient(ClientOptions{Jitter: jitter, Budget: 1})
		var shortest, longest time.Duration = math.MaxInt64, 0
		for range 300 {
			start, attempts := time.Now(), 0
			err := c.Unary(t.Context(), "/a.B/C", nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				if attempts++; attempts > 1 {
					return nil
				}
				*opts[0].(grpc.TrailerCallOption).TrailerAddr = metadata.Pairs(pushback, "10000")
				return refusedWith(t, codes.ResourceExhausted, 0)
			})
			if err != nil || attempts != 2 {
				t.Fatalf("%v after %d attempts", err, attempts)
			}
			shortest, longest = min(shortest, time.Since(start)), max(longest, time.Since(start))
		}
		if most := told + time.Duration(jitter*float64(told)); shortest < told || longest > most || longest-shortest < told/10 {
			t.Errorf("waits of %s to %s, want %s to %s, spread", shortest, longest, told, most)
		}
	})
}

func TestIdempotent(t *testing.T) {
	method := func(name string, level descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".idempotent.test.M"), OutputType: proto.String(".idempotent.test.M"),
			Options: &descriptorpb.MethodOptions{IdempotencyLevel: level.Enum()},
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("idempotent_test.proto"), Package: proto.String("idempotent.test"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("S"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Get", descriptorpb.MethodOptions_NO_SIDE_EFFECTS), method("Put", descriptorpb.MethodOptions_IDEMPOTENT),
			method("Add", descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN),
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"/idempotent.test.S/Get": true, "/idempotent.test.S/Put": true, "/idempotent.test.S/Add": false,
		"/idempotent.test.S/Other": false, "/idempotent.test.S": false, "/idempotent.test.M": false, "": false, "/": false,
	} {
		if got := Idempotent(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for code, want := range map[codes.Code]int{codes.OK: 200, codes.Unauthenticated: 401, codes.Canceled: 499, 99: 500} {
		if got := Status(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	for code := range codes.Code(17) {
		if Status(code) < 200 {
			t.Errorf("%s has no status", code)
		}
	}
	for err, want := range map[error]codes.Code{
		nil: codes.OK, context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded,
		errors.New("x"): codes.Unknown, status.Error(codes.NotFound, "x"): codes.NotFound,
	} {
		if got := codeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
