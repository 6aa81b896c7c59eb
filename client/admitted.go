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
	charges []charge // for its turn and for the rest, or one of both
}

// charge is what one decision of the gate has charged.
type charge struct {
	visit   *tidegate.Visit
	receipt tidegate.Receipt
	// counted are the checks that giveBack refunds, since ending the visit does not. A used turn in
	// a bucket is not refunded.
	counted []tidegate.Check
}

// end ends the visits of the call.
func (a *admitted) end(o tidegate.Outcome) {
	for i := range a.charges {
		_ = a.charges[i].visit.End(o) // what is not given back stays charged
	}
}

// giveBack undoes a call that was not made. A turn in a bucket that has come stays unused: others
// have booked those after it, and whoever got this one would go at the same time as one of them.
func (a *admitted) giveBack(ctx context.Context) {
	a.end(tidegate.Outcome{Void: true})
	for _, c := range a.charges {
		for i := range c.counted {
			c.counted[i].Cost = -c.counted[i].Cost
		}
		if len(c.counted) > 0 {
			_ = a.store.Adjust(context.WithoutCancel(ctx), c.receipt, c.counted)
		}
	}
}

// failed ends a call that has no response.
func (a *admitted) failed(err error) {
	if unsent(err) {
		a.giveBack(context.Background())
		return
	}
	a.end(tidegate.Outcome{})
}

// follow ends the call when its response has been read.
func (a *admitted) follow(res *http.Response) {
	open := false
	for i := range a.charges {
		visit := a.charges[i].visit
		open = open || visit != nil
		usage.FindInHeader(visit, res.Header)
	}
	if !open {
		return
	}
	// What was refused is not carried out, and has used nothing.
	outcome := tidegate.Outcome{Status: res.StatusCode, CostKnown: !accepted(res)}
	if res.Body == nil || res.Body == http.NoBody {
		a.end(outcome)
		return
	}
	end := sync.OnceFunc(func() { a.end(outcome) })
	if w, ok := res.Body.(io.Writer); ok { // a connection that has switched protocols
		res.Body = &struct {
			*followedBody
			io.Writer
		}{&followedBody{res.Body, end}, w}
		return
	}
	for i := range a.charges {
		if f := usage.NewFinder(a.charges[i].visit); f != nil {
			res.Body = f.Wrap(res)
		}
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
