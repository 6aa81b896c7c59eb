package client

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Bounds on what is read of a response whose request is retried, so that the retry can reuse its
// connection. Beyond them the connection is closed.
const (
	maxShelved = 64 << 10
	shelveTime = time.Second
)

// shelve reads the rest of a response, up to the bounds, and releases its connection. The response
// can still be returned: its body is what was read. res may be nil.
func shelve(res *http.Response) {
	if res == nil || res.Body == nil {
		return
	}
	body := res.Body
	stalled := time.AfterFunc(shelveTime, func() { _ = body.Close() })
	var read bytes.Buffer
	_, err := io.Copy(&read, io.LimitReader(body, maxShelved+1))
	stalled.Stop()
	_ = body.Close()
	if err == nil && read.Len() > maxShelved {
		err = io.ErrUnexpectedEOF
	}
	res.Body = &shelvedBody{Reader: &read, err: err}
}

// shelvedBody is the part of a body that was read, and the error in place of the rest.
type shelvedBody struct {
	io.Reader
	err error
}

func (b *shelvedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *shelvedBody) Close() error { return nil }

// closeBody closes the body of a request that is not sent, as a RoundTripper has to.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
