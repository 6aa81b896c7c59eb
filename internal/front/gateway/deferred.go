package gateway

import (
	"io"
	"net/http"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// Deferrer keeps requests for later. At Options.DeferPath it shows their status.
type Deferrer interface {
	http.Handler
	// Keep gets a request that was refused by d. It returns true if it has answered the request; if
	// not, the refusal stands. header is the header that upstreams would have got.
	Keep(w http.ResponseWriter, r *http.Request, header http.Header, d *tidegate.Decision) bool
}

// keep offers a refused request to the Deferrer, and reports whether that has answered it.
func (g *Gateway) keep(w http.ResponseWriter, r *http.Request, d tidegate.Decision) bool {
	if d.Limit == nil || d.Limit.Terms == nil || d.Limit.Terms.Handling.Defer == nil {
		return false
	}
	x := exchangeOf(r.Context())
	head := newHead(r, x)
	header := head.header()
	delete(header, "Expect") // of the client's connection
	slip, slipped := w.Header()[httplimit.SlipHeader]
	delete(w.Header(), httplimit.SlipHeader) // it is of d, and the answer is 202 or a refusal by another limit
	if !g.o.Deferrer.Keep(w, r, header, &d) {
		if slipped {
			w.Header()[httplimit.SlipHeader] = slip
		}
		return false
	}
	if x.writer.status == http.StatusAccepted {
		x.record.Reason = "It is kept, and sent later."
	}
	return true
}

// Replay sends a request that was kept. sent is false if no upstream can have got anything of it. The
// body of the answer has to be closed.
func (g *Gateway) Replay(r *http.Request) (res *http.Response, sent bool, err error) {
	x := &exchange{Context: r.Context(), gateway: g, method: r.Method, start: time.Now()}
	x.record = accesslog.Record{Time: x.start, Door: "deferred", ID: r.Header.Get("X-Request-Id"), Method: r.Method, Host: r.Host, Path: r.URL.Path}
	out := &outgoing{x: x, in: r.WithContext(x), head: head{client: r.Header, asIs: true}}
	out.answer.open(make(http.Header))
	out.openBody()
	res, err = g.balancer.send(out)
	if err == nil && res.StatusCode < 200 { // none, or a switch of protocols that nobody asked for
		_ = res.Body.Close()
		err = errStatus
	}
	if err != nil {
		x.record.Reason = err.Error()
		x.endReplay(0)
		return nil, x.maybeSent.Load(), err
	}
	out.takeHeader(res)
	var once sync.Once
	res.Body = &replayBody{res.Body, func() { once.Do(func() { x.endReplay(res.StatusCode) }) }}
	return res, true, nil
}

// endReplay is called when a replayed request has ended.
func (x *exchange) endReplay(status int) {
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
		x.gateway.reportInflight(-1)
	}
	x.record.Status, x.record.Duration = status, time.Since(x.start)
	if log := &x.gateway.o.AccessLog; log.To != nil {
		log.Write(&x.record)
	}
}

// replayBody is the body of an answer to a replayed request.
type replayBody struct {
	io.ReadCloser
	end func()
}

// Close ends the request.
func (b *replayBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
