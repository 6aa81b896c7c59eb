package httplimit

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"tidegate.dev/tidegate/internal/lang/jsonvalue"
)

// maxBody is the length of the longest body that is looked into.
const maxBody = 64 << 10

// bodyValue finds a value in a JSON body by the names of nested objects, "a.b".
// The first call reads the body and puts one in its place that gives the handler
// every byte; nothing else of r changes. It waits for the client to send it.
// Fields that are there twice are missing, unless they say the same.
func bodyValue(r *http.Request, path string) string {
	body, ok := r.Body.(*headBody)
	if !ok {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength > maxBody || !isJSON(header(r, "Content-Type")) {
			return ""
		}
		body = readHead(r.Body)
		r.Body = body
	}
	text, _ := body.json.Sole(path)
	return text
}

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// headBody is a body of which the head has been read: it is read again from
// memory, and what comes after it from the connection.
type headBody struct {
	head   []byte
	read   int             // how much of head was read again
	err    error           // what followed head; nil: more
	json   jsonvalue.Value // head, if it is all of the body and valid
	rest   io.ReadCloser
	closed atomic.Bool // a proxy may close while it reads
}

func readHead(body io.ReadCloser) *headBody {
	head, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	b := &headBody{head: head, err: err, rest: body}
	if err == nil && len(head) <= maxBody {
		b.err = io.EOF
		b.json, _ = jsonvalue.Parse(head)
	}
	return b
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
