// Package rawh2 is an HTTP/2 client for tests that sends whatever frames a test wants, in
// whatever order. Start with [Dial].
package rawh2

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"sync"
	"testing"
	"time"
)

// Frames of HTTP/2 (RFC 9113) and their flags.
const (
	FrameData     = 0x0
	FrameHeaders  = 0x1
	FrameReset    = 0x3
	FrameSettings = 0x4
	FramePing     = 0x6
	FrameGoAway   = 0x7
	FrameWindow   = 0x8

	FlagEndStream  = 0x1
	FlagAck        = 0x1
	FlagEndHeaders = 0x4
)

// Conn is a connection to a server. It acknowledges settings and pings, and gives no window
// by itself.
type Conn struct {
	t    testing.TB
	conn *tls.Conn
	next uint32

	mu     sync.Mutex
	heads  map[uint32]int // HEADERS per stream
	data   map[uint32]int // bytes of DATA
	ended  map[uint32]bool
	resets map[uint32]uint32 // error codes
	away   bool
	gone   bool // the connection
}

// Dial connects to a server, whatever its certificate. Every stream starts with the given
// window.
func Dial(t testing.TB, addr string, window uint32) *Conn {
	t.Helper()
	c := DialUnread(t, addr, window)
	go c.read()
	return c
}

// DialUnread connects as Dial does, but nothing is ever read from the connection.
func DialUnread(t testing.TB, addr string, window uint32) *Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &Conn{
		t: t, conn: conn, next: 1, heads: map[uint32]int{}, data: map[uint32]int{},
		ended: map[uint32]bool{}, resets: map[uint32]uint32{},
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	settings := binary.BigEndian.AppendUint16(nil, 4) // SETTINGS_INITIAL_WINDOW_SIZE
	c.Send(FrameSettings, 0, 0, binary.BigEndian.AppendUint32(settings, window))
	return c
}

// Send sends a frame.
func (c *Conn) Send(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	head = binary.BigEndian.AppendUint32(head, stream)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.conn.Write(append(head, payload...)) // a test sees what came of it
}

func (c *Conn) read() {
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c.conn, head); err != nil {
			break
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.conn, payload); err != nil {
			break
		}
		c.take(head[3], head[4], binary.BigEndian.Uint32(head[5:])&(1<<31-1), payload)
	}
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
}

func (c *Conn) take(kind, flags byte, stream uint32, payload []byte) {
	switch {
	case kind == FrameSettings && flags&FlagAck == 0, kind == FramePing && flags&FlagAck == 0:
		if kind == FrameSettings {
			payload = nil
		}
		c.Send(kind, FlagAck, 0, payload)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case FrameHeaders:
		c.heads[stream]++
	case FrameData:
		c.data[stream] += len(payload)
	case FrameReset:
		c.resets[stream] = binary.BigEndian.Uint32(payload)
	case FrameGoAway:
		c.away = true
	}
	if (kind == FrameHeaders || kind == FrameData) && flags&FlagEndStream != 0 {
		c.ended[stream] = true
	}
}

// Request opens a stream and returns its number; end says that there is no body.
func (c *Conn) Request(method, path string, end bool, more ...string) uint32 {
	c.t.Helper()
	fields := append([]string{":method", method, ":scheme", "https", ":authority", "example.com", ":path", path}, more...)
	var block []byte
	for i := 0; i < len(fields); i += 2 { // literals without indexing
		block = append(block, 0, byte(len(fields[i])))
		block = append(block, fields[i]...)
		block = append(block, byte(len(fields[i+1])))
		block = append(block, fields[i+1]...)
	}
	stream := c.next
	c.next += 2
	flags := byte(FlagEndHeaders)
	if end {
		flags |= FlagEndStream
	}
	c.Send(FrameHeaders, flags, stream, block)
	return stream
}

// Body sends a part of a request body; end says that it is the last.
func (c *Conn) Body(stream uint32, p []byte, end bool) {
	flags := byte(0)
	if end {
		flags = FlagEndStream
	}
	c.Send(FrameData, flags, stream, p)
}

// Window gives a stream, or with 0 the connection, room for n more bytes.
func (c *Conn) Window(stream, n uint32) {
	c.Send(FrameWindow, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}

// Over reports whether the stream has ended in any way.
func (c *Conn) Over(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, reset := c.resets[stream]
	return reset || c.ended[stream] || c.gone
}

// Reset reports whether the server has reset the stream with an error.
func (c *Conn) Reset(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resets[stream] != 0
}

// Away reports whether the server has sent GOAWAY.
func (c *Conn) Away() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

// Received returns how many HEADERS frames and bytes of DATA have come on a stream, whether
// it has ended, and whether the connection is gone.
func (c *Conn) Received(stream uint32) (heads, data int, ended, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heads[stream], c.data[stream], c.ended[stream], c.gone
}

// Answered makes a request, and fails the test unless size bytes come and the stream ends.
func (c *Conn) Answered(path string, size int) {
	c.t.Helper()
	stream := c.Request("GET", path, true)
	c.Window(stream, 1<<20)
	deadline := time.Now().Add(30 * time.Second)
	for {
		heads, data, ended, gone := c.Received(stream)
		if ended {
			if heads != 1 || data != size {
				c.t.Errorf("%s: %d heads and %d bytes, want %d", path, heads, data, size)
			}
			return
		}
		if gone || time.Now().After(deadline) {
			c.t.Fatalf("%s: no answer, connection gone: %v", path, gone)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
