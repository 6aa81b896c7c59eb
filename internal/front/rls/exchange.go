package rls

import (
	"bytes"
	"context"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// exchange is one call over gRPC: the request as it was sent, and the answer. Its memory is used again
// once the answer is encoded, which gRPC does once.
type exchange struct {
	server   *Server
	call     call
	answer   answer
	received []byte // the texts of call are in it
	sent     []byte
}

// What an exchange keeps to be used again.
const keptBytes = 16 << 10

// release makes x ready for the next call. Nobody may refer to any of it any more.
func (x *exchange) release() {
	if cap(x.received) > keptBytes || cap(x.sent) > keptBytes {
		return
	}
	x.call.reset()
	x.answer.reset()
	x.server.exchanges.Put(x)
}

// serviceDesc returns the generated description of the service, with a handler that takes and returns
// an exchange.
func (s *Server) serviceDesc() *grpc.ServiceDesc {
	desc := pb.RateLimitService_ServiceDesc
	desc.Methods = []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: s.handle}}
	return &desc
}

// handle answers a call over gRPC.
func (s *Server) handle(_ any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	x := s.exchanges.Get().(*exchange)
	if err := receive(x); err != nil {
		x.release()
		return nil, err
	}
	if err := s.ask(ctx, &x.call, &x.answer); err != nil {
		return nil, err
	}
	return x, nil
}

// codec reads and writes exchanges itself, and leaves other messages to protobuf's own codec.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal implements encoding.CodecV2. gRPC would call a malformed message an internal error,
// which it is not: the handler says what is wrong.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	x, ok := v.(*exchange)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	x.received = x.received[:0]
	for _, part := range data {
		x.received = append(x.received, part.ReadOnlyData()...)
	}
	x.call.wrong = x.call.decode(x.received)
	return nil
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	x, ok := v.(*exchange)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	var err error
	if x.sent, err = encode(x.sent[:0], &x.answer.response); err != nil {
		return nil, err
	}
	data := mem.BufferSlice{mem.SliceBuffer(bytes.Clone(x.sent))}
	x.release()
	return data, nil
}
