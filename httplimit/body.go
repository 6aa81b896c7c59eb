package httplimit

import (
	"io"
	"net/http"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/formvalue"
	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// maxBody is the length of the longest body that is looked into.
const maxBody = 64 << 10

// bodyValue finds a value in a JSON body or in a form by the names of nested objects,
// "a.b". The first call reads the body, for which it waits, and replaces r.Body by one
// that gives the handler every byte; nothing else of r changes. A field that is there
// twice counts as missing, unless a JSON body has the same value in both.
func bodyValue(r *http.Request, path string) string {
	body, ok := r.Body.(*headBody)
	if !ok {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength > maxBody {
			return ""
		}
		is := bodyTypeOf(r)
		if is.kind == bodyOther {
			return ""
		}
		body = readHead(r.Body, is)
		r.Body = body
	}
	text, _ := body.find(path)
	return text
}

// headBody is a body whose head has been read ahead: the handler reads the head from
// memory, and the rest from the connection.
type headBody struct {
	head   []byte
	read   int             // how many bytes of head the handler has read
	err    error           // the error after head; nil means that rest has more
	json   jsonvalue.Value // head, if it is all of the body and valid
	form   formvalue.Form  // the same of a form
	rest   io.ReadCloser
	closed atomic.Bool // a proxy may close while it reads
}

func readHead(body io.ReadCloser, is bodyType) *headBody {
	head, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	b := &headBody{head: head, err: err, rest: body}
	if err == nil && len(head) <= maxBody {
		b.err = io.EOF
		switch is.kind {
		case bodyJSON:
			b.json, _ = jsonvalue.Parse(head)
		case bodyURLEncoded:
			b.form, _ = formvalue.ParseURLEncoded(head)
		case bodyMultipart:
			b.form, _ = formvalue.ParseMultipart(head, is.boundary)
		}
	}
	return b
}

// find returns a value of the body, which is JSON or a form and not both.
func (b *headBody) find(path string) (string, bool) {
	if b.json != "" {
		return b.json.Sole(path)
	}
	return b.form.Sole(path)
}

func (b *headBody) Read(p []byte) (int, error) {
	switch {
	case b.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	case b.read < len(b.head):
		n := copy(p, b.head[b.read:])
		b.read += n
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	return b.rest.Read(p)
}

func (b *headBody) Close() error {
	b.closed.Store(true)
	return b.rest.Close()
}
