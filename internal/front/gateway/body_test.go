package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"tidegate.dev/tidegate/internal/front/listen"
)

// closedAtTheEnd is a body that net/http closes as soon as it has been read.
type closedAtTheEnd struct {
	io.Reader
	left int
}

func (c *closedAtTheEnd) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := c.Reader.Read(p)
	c.left -= n
	return n, err
}

func (c *closedAtTheEnd) Close() error { return nil }

// A body that was read to its end stays so, although net/http has closed it: http.Transport, which
// looks for more, would take an error for one of the request, and break off the answer.
func TestEndOfABodyThatIsClosed(t *testing.T) {
	const text = "{\"query\":\"{ me }\"}"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "with the end": iotest.DataErrReader, "byte by byte": iotest.OneByteReader,
	} {
		t.Run(name, func(t *testing.T) {
			b := body{
				inner:  &closedAtTheEnd{wrap(strings.NewReader(text)), len(text)},
				client: new(listen.Client), length: int64(len(text)),
			}
			got, err := io.ReadAll(io.LimitReader(&b, b.length))
			if err != nil || string(got) != text {
				t.Fatalf("read %q, %v", got, err)
			}
			for range 2 {
				if n, err := b.Read(make([]byte, 9)); n != 0 || err != io.EOF {
					t.Errorf("after the end: %d bytes, %v", n, err)
				}
			}
			if b.err() != nil || b.pending() || b.received() != b.length {
				t.Errorf("%v, pending %t, %d bytes", b.err(), b.pending(), b.received())
			}
		})
	}
}
