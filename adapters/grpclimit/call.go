package grpclimit

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tidegate.dev/tidegate"
)

// call is a call that was admitted.
type call struct {
	ctx      context.Context // for the handler
	request  *http.Request   // nil unless messages are decided, too
	visit    visit           // nil if there is nothing to do at the end
	told     metadata.MD     // where the client stands
	returned bool            // the handler has returned, and did not panic
}

// Unary is a [grpc.UnaryServerInterceptor].
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	if s.o.Exempt(info.FullMethod) {
		return handler(ctx, req)
	}
	c, refused := s.admit(ctx, info.FullMethod)
	if refused != nil {
		_ = grpc.SetTrailer(ctx, refused.trailer) // it fails only if there is no stream to set it for
		return nil, refused.err
	}
	defer func() { c.end(err) }()
	resp, err = handler(c.ctx, req)
	c.returned = true
	// A call that fails gets no headers: its client could not retry by itself.
	if err != nil || grpc.SetHeader(ctx, c.told) != nil {
		_ = grpc.SetTrailer(ctx, c.told)
	}
	return resp, err
}

// admit decides about a call, and waits for its turn.
func (s *Server) admit(ctx context.Context, method string) (*call, *refusal) {
	r := newRequest(ctx, method)
	d, v := s.decider.decide(r)
	s.observe(ctx, method, d)
	if !d.OK {
		return nil, s.refuse(ctx, &d)
	}
	c := &call{ctx: ctx, visit: v, told: s.describe(&d)}
	if s.o.Messages {
		c.request = r
	}
	if v, ok := v.(*tidegate.Visit); ok && len(v.Sources()) > 0 {
		c.ctx = context.WithValue(ctx, visitKey{}, v)
	}
	if d.Wait > 0 && !sleep(ctx, d.Wait) {
		c.end(ctx.Err())
		return nil, ended(ctx)
	}
	return c, nil
}

func (s *Server) observe(ctx context.Context, method string, d tidegate.Decision) {
	if s.o.OnDecision != nil {
		s.o.OnDecision(ctx, method, d)
	}
}

// end ends the visit of a call whose handler has returned err, or panicked.
func (c *call) end(err error) {
	if c.visit == nil {
		return
	}
	var o tidegate.Outcome
	if c.returned && c.ctx.Err() == nil { // whoever has left was not answered
		o.Status = Status(codeOf(err))
	}
	_ = c.visit.End(o) // if the store fails, the charge stands, and a slot until its lease runs out
}

// sleep waits for d and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended returns the refusal of a call whose client has left.
func ended(ctx context.Context) *refusal {
	return &refusal{err: status.FromContextError(ctx.Err()).Err(), trailer: metadata.MD{}}
}
