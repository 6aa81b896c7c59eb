package client

import (
	"context"
	"io"
	"net/http"
	"sync"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/usage"
)

// admitted is a call that there is room for.
type admitted struct {
	store   tidegate.Store
	visit   *tidegate.Visit
	receipt tidegate.Receipt
	// counted is what the visit does not give back, turns in buckets aside.
	counted []tidegate.Check
}

// giveBack undoes a call that was not made. A turn in a bucket stays unused: others have
// booked those after it, and whoever got this one would go at the same time as one of them.
func (a *admitted) giveBack(ctx context.Context) {
	_ = a.visit.End(tidegate.Outcome{Void: true}) // what is not given back stays charged
	for i := range a.counted {
		a.counted[i].Cost = -a.counted[i].Cost
	}
	if len(a.counted) > 0 {
		_ = a.store.Adjust(context.WithoutCancel(ctx), a.receipt, a.counted)
	}
}

// failed ends a call that has no response.
func (a *admitted) failed(err error) {
	if unsent(err) {
		a.giveBack(context.Background())
		return
	}
	_ = a.visit.End(tidegate.Outcome{})
}

// follow ends the call when its response has been read.
func (a *admitted) follow(res *http.Response) {
	if a.visit == nil {
		return
	}
	usage.FindInHeader(a.visit, res.Header)
	// What was refused is not carried out, and has used nothing.
	outcome := tidegate.Outcome{Status: res.StatusCode, CostKnown: !accepted(res)}
	if res.Body == nil || res.Body == http.NoBody {
		_ = a.visit.End(outcome)
		return
	}
	end := sync.OnceFunc(func() { _ = a.visit.End(outcome) })
	if w, ok := res.Body.(io.Writer); ok { // of a connection that has changed protocols
		res.Body = &struct {
			*followedBody
			io.Writer
		}{&followedBody{res.Body, end}, w}
		return
	}
	if f := usage.NewFinder(a.visit); f != nil {
		res.Body = f.Wrap(res)
	}
	res.Body = &followedBody{res.Body, end}
}

// followedBody ends its call when it is read to the end, or closed.
type followedBody struct {
	io.ReadCloser
	end func()
}

func (b *followedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *followedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
