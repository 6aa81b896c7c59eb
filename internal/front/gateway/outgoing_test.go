package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// What is left of a body is not read after the handler has returned, and closing it is for
// net/http.
func TestOnceBody(t *testing.T) {
	inner := strings.NewReader("hello")
	r := newRequest(t, "POST", "http://example.com/", inner)
	out := &outgoing{in: r}
	out.openBody()
	if out.body.wasRead.Load() {
		t.Error("it was read")
	}
	if n, err := out.body.Read(make([]byte, 2)); n != 2 || err != nil || !out.body.wasRead.Load() {
		t.Errorf("%d, %v", n, err)
	}
	if err := out.body.Close(); err != nil {
		t.Error(err)
	}
	out.end()
	if n, err := out.body.Read(make([]byte, 2)); n != 0 || err != errEnded || inner.Len() != 3 {
		t.Errorf("%d, %v after the end", n, err)
	}
	for _, none := range []io.Reader{nil, http.NoBody} {
		out := &outgoing{in: newRequest(t, "POST", "http://example.com/", none)}
		if out.openBody(); out.body != nil {
			t.Errorf("%v has a body", none)
		}
		out.end()
	}
}
