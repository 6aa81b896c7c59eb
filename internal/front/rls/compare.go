package rls

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// Compare asks another rate limit service what this one was asked, and counts where the answers
// differ, so that a team can change over with proof. No call waits for it: what does not fit its
// queue is not compared, but counted. Use [NewCompare].
type Compare struct {
	conn   *grpc.ClientConn
	client pb.RateLimitServiceClient
	o      CompareOptions
	queue  chan comparison
	done   sync.WaitGroup
	stop   context.CancelFunc
	ctx    context.Context

	held            atomic.Int64 // bytes of calls in the queue, and of those that are compared
	skipped, failed atomic.Uint64
	lastSample      atomic.Int64 // Unix time in nanoseconds
}

// CompareOptions are the options of [NewCompare].
type CompareOptions struct {
	// Address of the other service, host:port.
	Address string
	// Told, unless nil, is called for every descriptor that was compared. rule is the path of its
	// rule, "" if it has none. It is called by several goroutines.
	Told func(domain, rule string, agree bool)
	// Log gets samples of answers that differ, at most one a second.
	Log *slog.Logger
}

const (
	compareQueue   = 1024
	compareBytes   = 16 << 20
	compareWorkers = 16
	compareTimeout = time.Second
	sampleEvery    = time.Second
)

// comparison is a call that was answered here.
type comparison struct {
	in    *pb.RateLimitRequest
	out   *pb.RateLimitResponse
	rules []string // by descriptor
	size  int64    // in bytes, as they are sent
}

// NewCompare returns a Compare that connects when it is first needed. Close it at the end.
func NewCompare(o CompareOptions) (*Compare, error) {
	conn, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the rate limit service %s: %w", o.Address, err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Compare{conn: conn, client: pb.NewRateLimitServiceClient(conn), o: o, queue: make(chan comparison, compareQueue)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for range compareWorkers {
		c.done.Go(c.work)
	}
	return c, nil
}

// Close ends the comparing.
func (c *Compare) Close() error {
	c.stop()
	c.done.Wait()
	return c.conn.Close()
}

// Stats returns how many calls were not compared: skipped because too many were waiting, and failed
// because the other service had no answer, or one about another number of descriptors.
func (c *Compare) Stats() (skipped, failed uint64) { return c.skipped.Load(), c.failed.Load() }

// ask puts a call in the queue, if there is room. It copies the messages: callers use them again.
func (c *Compare) ask(asked *call, in *pb.RateLimitRequest, out *pb.RateLimitResponse) {
	size := int64(proto.Size(in) + proto.Size(out))
	if len(c.queue) == cap(c.queue) || !c.hold(size) {
		c.skipped.Add(1)
		return
	}
	rules := make([]string, len(asked.descriptors))
	for i := range asked.descriptors {
		if r := asked.descriptors[i].rule; r != nil {
			rules[i] = r.Path
		}
	}
	one := comparison{proto.CloneOf(in), proto.CloneOf(out), rules, size}
	select {
	case c.queue <- one:
	default:
		c.held.Add(-size)
		c.skipped.Add(1)
	}
}

// hold counts a call of size bytes as held, and reports whether there is room for it.
func (c *Compare) hold(size int64) bool {
	if c.held.Add(size) > compareBytes {
		c.held.Add(-size)
		return false
	}
	return true
}

func (c *Compare) work() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case one := <-c.queue:
			c.compare(one)
		}
	}
}

// compare asks the other service and tells the differences.
func (c *Compare) compare(one comparison) {
	defer c.held.Add(-one.size)
	ctx, cancel := context.WithTimeout(c.ctx, compareTimeout)
	defer cancel()
	theirs, err := c.client.ShouldRateLimit(ctx, one.in)
	if err != nil || len(theirs.GetStatuses()) != len(one.out.GetStatuses()) {
		if c.ctx.Err() == nil {
			c.failed.Add(1)
			c.sample("the other rate limit service has no answer to compare with", one, "err", err)
		}
		return
	}
	agree := theirs.GetOverallCode() == one.out.GetOverallCode()
	for i, st := range one.out.GetStatuses() {
		same := alikeStatus(st, theirs.GetStatuses()[i])
		agree = agree && same
		if c.o.Told != nil {
			c.o.Told(one.in.GetDomain(), one.rules[i], same)
		}
	}
	if !agree {
		c.sample("the other rate limit service answers differently", one, "theirs", clip(theirs.String()))
	}
}

// alikeStatus reports whether two services mean the same: the code, and the limit. What remains
// may differ by what others ask between the two.
func alikeStatus(a, b *pb.RateLimitResponse_DescriptorStatus) bool {
	x, y := a.GetCurrentLimit(), b.GetCurrentLimit()
	return a.GetCode() == b.GetCode() && (x == nil) == (y == nil) &&
		x.GetRequestsPerUnit() == y.GetRequestsPerUnit() && x.GetUnit() == y.GetUnit()
}

// sample logs a call, unless another was logged just before.
func (c *Compare) sample(message string, one comparison, more ...any) {
	now, last := time.Now().UnixNano(), c.lastSample.Load()
	if now-last < int64(sampleEvery) || !c.lastSample.CompareAndSwap(last, now) {
		return
	}
	c.o.Log.Warn(message, append([]any{"asked", clip(one.in.String()), "ours", clip(one.out.String())}, more...)...)
}

// clip shortens a text for a log.
func clip(text string) string {
	const most = 4 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
