package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// taking bounds how long a connected upstream may take nothing of a request that it has not
// answered. Over HTTP/1 a write fails then; see boundWrites. Over HTTP/2 the upstream may open no
// stream or give no room for a body while its connection goes on, and http.Transport waits for that
// as long as the client does.
type taking struct {
	limit  time.Duration
	cancel context.CancelFunc // of the request
	timer  *time.Timer
	over   atomic.Bool // answered, failed or cancelled
}

// errNotTaken is the error of a request of which the upstream took nothing for too long.
var errNotTaken = fmt.Errorf("the upstream takes nothing of the request: %w", context.DeadlineExceeded)

// takeWithin returns r, which is cancelled if the upstream takes nothing of it for limit.
func takeWithin(r *http.Request, limit time.Duration) (*http.Request, *taking) {
	ctx, cancel := context.WithCancel(r.Context())
	t := &taking{limit: limit, cancel: cancel}
	t.timer = time.AfterFunc(limit, t.expire)
	t.timer.Stop() // there is no connection yet
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { t.begin() },
		WroteRequest: func(httptrace.WroteRequestInfo) { t.timer.Stop() }, // now http.Transport waits for the answer, for as long
	}))
	if r.Body != nil {
		r.Body = takenBody{r.Body, t}
	}
	return r, t
}

// begin is called when the upstream has to take something.
func (t *taking) begin() {
	if !t.over.Load() {
		t.timer.Reset(t.limit)
	}
}

func (t *taking) expire() {
	if !t.over.Swap(true) {
		t.cancel()
	}
}

// end is called after the round trip. It reports whether the request was cancelled before.
func (t *taking) end() (cancelled bool) {
	t.timer.Stop()
	return t.over.Swap(true)
}

// takenBody is the body of such a request.
type takenBody struct {
	io.ReadCloser
	taking *taking
}

// mostTaken is how much is read at a time, so that an upstream that takes little by little is seen
// to take something.
const mostTaken = 16 << 10

// Read implements io.Reader. While it waits for the client, the upstream need not take anything.
func (b takenBody) Read(p []byte) (int, error) {
	b.taking.timer.Stop()
	n, err := b.ReadCloser.Read(p[:min(len(p), mostTaken)])
	b.taking.begin()
	return n, err
}
