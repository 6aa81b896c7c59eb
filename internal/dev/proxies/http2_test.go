package proxies

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Frames and flags of HTTP/2 (RFC 9113).
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	frameGoAway   = 0x7
	frameWindow   = 0x8

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
)

// client2 sends requests by HTTP/2, with any target: libraries would not.
type client2 struct {
	t      *testing.T
	addr   string
	conn   net.Conn // nil before the first request, and after the connection has ended
	in     *bufio.Reader
	stream uint32
}

func newClient2(t *testing.T, addr string) *client2 {
	c := &client2{t: t, addr: addr}
	t.Cleanup(c.close)
	return c
}

func (c *client2) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client2) dial() {
	conn, err := tls.Dial("tcp", c.addr, &tls.Config{InsecureSkipVerify: true, ServerName: "example.com", NextProtos: []string{"h2"}})
	if err != nil {
		c.t.Fatal(err)
	}
	if proto := conn.ConnectionState().NegotiatedProtocol; proto != "h2" {
		c.t.Fatalf("the proxy speaks %q", proto)
	}
	c.conn, c.in, c.stream = conn, bufio.NewReader(conn), 1
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(frameSettings, 0, 0, nil)
	c.frame(frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<30)) // answers are not held up
}

func (c *client2) frame(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, _ = c.conn.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// get says whether the answer is 200; one that does not come has no status.
func (c *client2) get(target string) answer {
	if c.conn == nil {
		c.dial()
	}
	_ = c.conn.SetDeadline(time.Now().Add(time.Minute))
	var block []byte // literals without indexing (RFC 7541, 6.2.2)
	for i, text := range []string{":method", "GET", ":scheme", "https", ":authority", "example.com", ":path", target} {
		if i%2 == 0 {
			block = append(block, 0)
		}
		block = append(block, byte(len(text)))
		block = append(block, text...)
	}
	if len(target) > 126 {
		c.t.Fatalf("%q is too long for this client", target)
	}
	c.frame(frameHeaders, flagEndHeaders|flagEndStream, c.stream, block)
	got, more := c.answered()
	c.stream += 2
	if !more {
		c.close()
	}
	return got
}

// answered waits until the request is answered or broken off; more says whether the
// connection takes another one.
func (c *client2) answered() (got answer, more bool) {
	more = true
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return answer{}, false
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return answer{}, false
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			c.frame(frameSettings, flagAck, 0, nil)
		case kind == frameGoAway && len(payload) >= 4:
			if last := binary.BigEndian.Uint32(payload); last < c.stream {
				return answer{}, false
			}
			more = false // this one is still answered
		case stream != c.stream:
		case kind == frameReset:
			return answer{}, more
		case kind == frameHeaders || kind == frameData:
			if kind == frameHeaders && isOK(payload) {
				got.status = 200
			}
			if flags&flagEndStream != 0 {
				return got, more
			}
		}
	}
}

// isOK reports whether a header block begins with the field :status: 200, behind changes
// of the table's size (RFC 7541, 6.3).
func isOK(block []byte) bool {
	for len(block) > 0 && block[0]>>5 == 1 {
		long := block[0]&31 == 31
		block = block[1:]
		for long && len(block) > 0 {
			long = block[0] >= 128
			block = block[1:]
		}
	}
	return len(block) > 0 && block[0] == 0x88
}

// newPEM writes a certificate and its key into a file.
func newPEM(t *testing.T) string {
	t.Helper()
	cert := testdep.NewCertificate(t, "example.com", nil)
	file := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(file, []byte(cert.PEM()+cert.KeyPEM(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
