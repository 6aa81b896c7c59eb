package gateway

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/rawh2"
)

// h2wire is a client of HTTP/2 that sends whatever it is told to, one request at a time:
// it waits for the answer, which rawh2 does not.
type h2wire struct {
	conn   *tls.Conn
	in     *bufio.Reader
	stream uint32
}

func dialH2Wire(t testing.TB, addr string) *h2wire {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
	c := &h2wire{conn: conn, in: bufio.NewReader(conn)}
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(rawh2.FrameSettings, 0, 0, nil)
	c.frame(rawh2.FrameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, 1<<30)) // answers are not held up
	return c
}

func (c *h2wire) frame(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, _ = c.conn.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// fields writes header fields as they are, without compression (RFC 7541, 6.2.2).
func fields(pairs ...string) []byte {
	var b []byte
	for i, text := range pairs {
		if i%2 == 0 {
			b = append(b, 0)
		}
		if n := len(text); n < 127 {
			b = append(b, byte(n))
		} else {
			b = append(b, 127)
			for n -= 127; n >= 128; n >>= 7 {
				b = append(b, byte(n)|128)
			}
			b = append(b, byte(n))
		}
		b = append(b, text...)
	}
	return b
}

// send sends a request with header fields, a body and trailers, if there are some.
func (c *h2wire) send(method, path string, header []string, body string, trailer ...string) {
	c.stream += 2
	stream := c.stream - 1
	flags := byte(rawh2.FlagEndHeaders)
	if body == "" && len(trailer) == 0 {
		flags |= rawh2.FlagEndStream
	}
	all := append([]string{":method", method, ":scheme", "https", ":authority", "example.com", ":path", path}, header...)
	c.frame(rawh2.FrameHeaders, flags, stream, fields(all...))
	if body != "" {
		flags = 0
		if len(trailer) == 0 {
			flags = rawh2.FlagEndStream
		}
		c.frame(rawh2.FrameData, flags, stream, []byte(body))
	}
	if len(trailer) > 0 {
		c.frame(rawh2.FrameHeaders, rawh2.FlagEndHeaders|rawh2.FlagEndStream, stream, fields(trailer...))
	}
}

// answered waits until the last request is answered or broken off. It returns what was
// in the head of the answer, still compressed, and false when the connection ends.
func (c *h2wire) answered() (head []byte, ok bool) {
	for {
		var start [9]byte
		if _, err := io.ReadFull(c.in, start[:]); err != nil {
			return nil, false
		}
		payload := make([]byte, int(start[0])<<16|int(start[1])<<8|int(start[2]))
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return nil, false
		}
		kind, flags, stream := start[3], start[4], binary.BigEndian.Uint32(start[5:])
		switch {
		case kind == rawh2.FrameSettings && flags&rawh2.FlagAck == 0:
			c.frame(rawh2.FrameSettings, rawh2.FlagAck, 0, nil)
		case kind == rawh2.FrameGoAway:
			return nil, false
		case stream != c.stream-1:
		case kind == rawh2.FrameReset:
			return nil, true
		case kind == rawh2.FrameHeaders || kind == rawh2.FrameData:
			if kind == rawh2.FrameHeaders && head == nil {
				head = payload
			}
			if flags&rawh2.FlagEndStream != 0 {
				return head, true
			}
		}
	}
}
