package calltest

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Answer is how a call ended.
type Answer struct {
	Header, Trailer metadata.MD
	Err             error
}

// Code returns the code of the answer.
func (a *Answer) Code() codes.Code { return status.Code(a.Err) }

// Pushback returns what the trailer tells clients about retries.
func (a *Answer) Pushback() string {
	if told := a.Trailer["grpc-retry-pushback-ms"]; len(told) == 1 {
		return told[0]
	}
	return ""
}

// RetryDelay returns that of the details; 0 if there is none.
func (a *Answer) RetryDelay() time.Duration {
	for _, detail := range status.Convert(a.Err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// Violated returns the subject of the quota failure in the details.
func (a *Answer) Violated() string {
	for _, detail := range status.Convert(a.Err).Details() {
		if failure, ok := detail.(*errdetails.QuotaFailure); ok && len(failure.GetViolations()) == 1 {
			return failure.GetViolations()[0].GetSubject()
		}
	}
	return ""
}

// Kind is a kind of call. Call sends two messages where the client streams.
type Kind struct {
	Name string
	Call func(ctx context.Context, client pb.TestServiceClient) Answer
}

// Kinds are all there are.
var Kinds = []Kind{
	{"unary", Unary}, {"server stream", serverStream}, {"client stream", clientStream}, {"bidi stream", bidiStream},
}

// Unary makes a unary call.
func Unary(ctx context.Context, client pb.TestServiceClient) (a Answer) {
	_, a.Err = client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&a.Header), grpc.Trailer(&a.Trailer))
	return a
}

// finish returns the answer of a stream that ended with err.
func finish(stream grpc.ClientStream, err error) Answer {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	header, _ := stream.Header()
	return Answer{Header: header, Trailer: stream.Trailer(), Err: err}
}

func serverStream(ctx context.Context, client pb.TestServiceClient) Answer {
	stream, err := client.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{})
	if err != nil {
		return Answer{Err: err}
	}
	for err == nil {
		_, err = stream.Recv()
	}
	return finish(stream, err)
}

func clientStream(ctx context.Context, client pb.TestServiceClient) Answer {
	stream, err := client.StreamingInputCall(ctx)
	if err != nil {
		return Answer{Err: err}
	}
	for range 2 {
		if stream.Send(&pb.StreamingInputCallRequest{}) != nil {
			break // CloseAndRecv tells why
		}
	}
	got, err := stream.CloseAndRecv()
	if err == nil && got.GetAggregatedPayloadSize() != 2 {
		err = errors.New("messages were lost or sent twice")
	}
	return finish(stream, err)
}

func bidiStream(ctx context.Context, client pb.TestServiceClient) Answer {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return Answer{Err: err}
	}
	for range 2 {
		if stream.Send(&pb.StreamingOutputCallRequest{}) != nil {
			break // Recv tells why
		}
		if _, err := stream.Recv(); err != nil {
			return finish(stream, err)
		}
	}
	_ = stream.CloseSend()
	_, err = stream.Recv()
	return finish(stream, err)
}
