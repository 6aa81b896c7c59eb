package grpclimit

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// Options says how calls are told apart and what clients are told. The zero value is what
// [Limit] and [Gate] use, and right for most servers.
type Options struct {
	// Headers, Reset and RetryJitter are those of [httplimit.Options]. The fields of the
	// dialects are header metadata of calls that succeed. Calls that fail have them in the
	// trailer: with headers, gRPC clients would not retry by themselves.
	Headers     httplimit.Dialect
	Reset       httplimit.Reset
	RetryJitter float64
	// ClientIP says which address is the client's, and which peers are believed. The zero
	// value takes the peer of the connection and believes no metadata. Its functions see
	// the call as a request.
	ClientIP httplimit.ClientIP
	// Missing is what Limit does with a call without a key; the zero value counts it by its
	// client's address. With Refuse it gets UNAUTHENTICATED.
	Missing httplimit.Missing
	// Exempt reports whether calls of a method, such as "/shop.v1.Orders/Create", pass
	// undecided; nil means [Infrastructure].
	Exempt func(method string) bool
	// Messages decides about the messages that a client sends on a stream, too: Limit
	// charges one event for each, beside that for the call; Gate asks its rules about a
	// request whose method is MESSAGE. A refused message ends its stream.
	Messages bool
	// MessageWait is how long a message that is over the limit may wait for its turn,
	// while flow control holds its client back. 0 means that it is refused at once.
	MessageWait time.Duration
	// MaxPushback is the longest wait for which clients are told to retry by themselves; 0
	// means a minute. After a longer one they are told not to, because the call would hang
	// that long; RetryInfo says when to come again.
	MaxPushback time.Duration
	// OnDecision is told every decision before it is acted on, also those about messages
	// and those that the fail mode made (d.Err says why). It is called by many goroutines
	// at once, and the call waits for it.
	OnDecision func(ctx context.Context, method string, d tidegate.Decision)
}

const defaultMaxPushback = time.Minute

// complete fills in the defaults, and panics on what can only be a mistake in the program.
func (o *Options) complete() {
	if o.MessageWait < 0 || o.MaxPushback < 0 {
		panic("grpclimit: Options.MessageWait and Options.MaxPushback must not be negative")
	}
	if o.MessageWait > 0 && !o.Messages {
		panic("grpclimit: Options.MessageWait is set, and Options.Messages is not: no message would wait")
	}
	if o.MaxPushback == 0 {
		o.MaxPushback = defaultMaxPushback
	}
	if o.Exempt == nil {
		o.Exempt = Infrastructure
	}
}

// front returns the parts of package httplimit that find keys and describe decisions.
func (o *Options) front(limits ...*tidegate.Limit) *httplimit.Front {
	return httplimit.Options{
		Headers: o.Headers, Reset: o.Reset, RetryJitter: o.RetryJitter, ClientIP: o.ClientIP, Missing: o.Missing,
	}.Front(limits...)
}

// Server limits calls. Its methods are interceptors; put them before others that set header
// metadata, so that clients can retry refused calls by themselves. [Limit] and [Gate] make it.
type Server struct {
	o       Options
	front   *httplimit.Front
	decider decider
}

// ServerOptions returns the options for grpc.NewServer. Interceptors of other options are
// called in the order of the options.
func (s *Server) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.Unary), grpc.ChainStreamInterceptor(s.Stream)}
}
