package grpclimit

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ClientOptions says which refused calls a [Client] repeats. The zero value is right for most.
type ClientOptions struct {
	// Methods reports whether calls of a method may be repeated; nil means all. A call that
	// is refused by a limit has done nothing yet, so it is safe to repeat. Use [Idempotent]
	// for servers that may answer RESOURCE_EXHAUSTED with RetryInfo after some work.
	Methods func(method string) bool
	// MaxWait is the longest wait that a server may ask for; 0 means a minute. A call that
	// would wait longer, or beyond its deadline, is not repeated.
	MaxWait time.Duration
	// MaxAttempts of a call, the first included; 0 means 5.
	MaxAttempts int
	// Jitter is the share of the wait that is added to it at most, at random, so that clients
	// that were refused together do not come back together; 0 means 0.2.
	Jitter float64
	// Budget is the share of calls that may be repeated: each call adds it to a budget, which
	// starts with 10 and holds 10 at most, and each repeat takes 1; 0 means 0.2. Calls that
	// find less than 1 get their refusal at once.
	Budget float64
	// OnWait is told before a call waits to be repeated. It is called by many goroutines at
	// once, and the call waits for it.
	OnWait func(ctx context.Context, method string, wait time.Duration)
}

func (o *ClientOptions) complete() {
	if o.MaxWait < 0 || o.MaxAttempts < 0 || !(o.Jitter >= 0) || !(o.Budget >= 0) {
		panic("grpclimit: NewClient: an option is negative")
	}
	if o.Methods == nil {
		o.Methods = func(string) bool { return true }
	}
	if o.MaxWait == 0 {
		o.MaxWait = time.Minute
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 5
	}
	if o.Jitter == 0 {
		o.Jitter = 0.2
	}
	if o.Budget == 0 {
		o.Budget = 0.2
	}
}

// Client repeats calls that a server has refused, when the server says to: by
// grpc-retry-pushback-ms in the trailer, or with RESOURCE_EXHAUSTED by RetryInfo in the details or
// retry-after in the trailer. Its methods are interceptors. [NewClient] makes it.
//
// A retry policy in the service config of gRPC does much the same. Use one or the other for a
// method: together they multiply their attempts.
type Client struct {
	o      ClientOptions
	budget budget
}

// NewClient returns a Client. Use one for all connections to a service, so that they share a budget. It
// panics if an option is negative.
func NewClient(o ClientOptions) *Client {
	o.complete()
	return &Client{o: o, budget: budget{share: o.Budget, left: maxBudget}}
}

// DialOptions returns the options for grpc.NewClient.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.Unary), grpc.WithChainStreamInterceptor(c.Stream)}
}

// Unary is a [grpc.UnaryClientInterceptor].
func (c *Client) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.budget.earn()
	for attempt := 1; ; attempt++ {
		var trailer metadata.MD
		err := invoker(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Trailer(&trailer))...)
		if err == nil {
			return nil
		}
		if err := c.wait(ctx, method, attempt, err, trailer); err != nil {
			return err
		}
	}
}

// wait returns nil when it is time to repeat the call that ended with refused, and the error to
// return if it is not to be repeated.
func (c *Client) wait(ctx context.Context, method string, attempt int, refused error, trailer metadata.MD) error {
	told, ok := retryTime(refused, trailer)
	if !ok || told > c.o.MaxWait || attempt >= c.o.MaxAttempts || !c.o.Methods(method) {
		return refused
	}
	wait := told + time.Duration(rand.Float64()*c.o.Jitter*float64(told))
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait || !c.budget.spend() {
		return refused
	}
	if c.o.OnWait != nil {
		c.o.OnWait(ctx, method, wait)
	}
	if !sleep(ctx, wait) {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}
