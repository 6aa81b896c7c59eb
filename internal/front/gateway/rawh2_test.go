package gateway

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"sync"
	"testing"
	"time"
)

// Frames of HTTP/2 (RFC 9113), as far as an attacker needs them.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameGoAway   = 0x7
	frameWindow   = 0x8

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
)

// rawH2 is a client that sends which frames it likes. It acknowledges settings and
// pings, and gives no window by itself.
type rawH2 struct {
	t    *testing.T
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

// dialH2 connects. Every stream starts with the given window.
func dialH2(t *testing.T, g running, window uint32) *rawH2 {
	t.Helper()
	conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rawH2{
		t: t, conn: conn, next: 1, heads: map[uint32]int{}, data: map[uint32]int{},
		ended: map[uint32]bool{}, resets: map[uint32]uint32{},
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	settings := binary.BigEndian.AppendUint16(nil, 4) // SETTINGS_INITIAL_WINDOW_SIZE
	c.send(frameSettings, 0, 0, binary.BigEndian.AppendUint32(settings, window))
	go c.read()
	return c
}

func (c *rawH2) send(kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	head = binary.BigEndian.AppendUint32(head, stream)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.conn.Write(append(head, payload...)) // a test sees what came of it
}

func (c *rawH2) read() {
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

func (c *rawH2) take(kind, flags byte, stream uint32, payload []byte) {
	switch {
	case kind == frameSettings && flags&flagAck == 0, kind == framePing && flags&flagAck == 0:
		if kind == frameSettings {
			payload = nil
		}
		c.send(kind, flagAck, 0, payload)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case frameHeaders:
		c.heads[stream]++
	case frameData:
		c.data[stream] += len(payload)
	case frameReset:
		c.resets[stream] = binary.BigEndian.Uint32(payload)
	case frameGoAway:
		c.away = true
	}
	if (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0 {
		c.ended[stream] = true
	}
}

// request opens a stream; end says that there is no body.
func (c *rawH2) request(method, path string, end bool, more ...string) uint32 {
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
	flags := byte(flagEndHeaders)
	if end {
		flags |= flagEndStream
	}
	c.send(frameHeaders, flags, stream, block)
	return stream
}

func (c *rawH2) body(stream uint32, p []byte, end bool) {
	flags := byte(0)
	if end {
		flags = flagEndStream
	}
	c.send(frameData, flags, stream, p)
}

// window gives a stream, or with 0 the connection, room for n more bytes.
func (c *rawH2) window(stream, n uint32) {
	c.send(frameWindow, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}

// over reports whether the stream has ended in any way.
func (c *rawH2) over(stream uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, reset := c.resets[stream]
	return reset || c.ended[stream] || c.gone
}

func (c *rawH2) received(stream uint32) (heads, data int, ended, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heads[stream], c.data[stream], c.ended[stream], c.gone
}

// answered makes a request on this connection, and fails the test unless all of it comes.
func (c *rawH2) answered(path string, size int) {
	c.t.Helper()
	stream := c.request("GET", path, true)
	c.window(stream, 1<<20)
	deadline := time.Now().Add(10 * time.Second)
	for {
		heads, data, ended, gone := c.received(stream)
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
