package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// clientConn is a connection with several calls in flight. It writes and reads the frames of gRPC
// itself, in one goroutine, with one write for all answers that came together: a client of
// grpc-go takes as much of the cores as the server that is measured, and Envoy's does not.
type clientConn struct {
	conn      net.Conn
	in        *bufio.Reader
	out       *bufio.Writer
	frames    *http2.Framer
	headers   *hpack.Decoder
	questions [][]byte
	next      int // question
	statuses  int
	counting  *atomic.Bool

	first, again []byte // the headers of the first call, and of every other one
	stream       uint32
	room         int64 // bytes that the server takes on this connection
	flying       map[uint32]*flight
	idle         []*flight
	ended        *flight // whose trailers are being read
	body         []byte

	calls, wrong int64
	times        []time.Duration
	problem      error // the first one
}

// flight is a call that has no whole answer yet.
type flight struct {
	begun  time.Time // zero means it is not timed
	reply  []byte    // the answer: a prefix and the message
	status string    // grpc-status
}

const (
	prefixBytes  = 5       // of a message: a flag and its length
	ampleRoom    = 1 << 30 // bytes that the server may send: more than in any heat
	initialRoom  = 1<<16 - 1
	statusHeader = "grpc-status"
)

// dial opens a connection for so many calls in flight.
func dial(ctx context.Context, address string, questions [][]byte, statuses, calls int, counting *atomic.Bool) (*clientConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	cc := &clientConn{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10),
		questions: questions, next: rand.IntN(len(questions)), statuses: statuses, counting: counting,
		stream: 1, room: initialRoom, flying: make(map[uint32]*flight, calls),
	}
	cc.frames = http2.NewFramer(cc.out, cc.in)
	cc.frames.SetReuseFrames()
	cc.headers = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == statusHeader {
			cc.ended.status = f.Value
		}
	})
	cc.first, cc.again = requestHeaders(address)
	for range calls {
		cc.idle = append(cc.idle, new(flight))
	}
	return cc, nil
}

// requestHeaders are those of a call, for a server that has seen none, and for one that has.
func requestHeaders(address string) (first, again []byte) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for range 2 {
		first, again = again, nil
		block.Reset()
		for _, h := range [][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":path", pb.RateLimitService_ShouldRateLimit_FullMethodName},
			{":authority", address},
			{"content-type", "application/grpc"},
			{"te", "trailers"},
		} {
			_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // a buffer takes everything
		}
		again = bytes.Clone(block.Bytes())
	}
	return first, again
}

// run calls until it is over. What is wrong with a connection ends it.
func (cc *clientConn) run(ctx context.Context, over *atomic.Bool) {
	defer cc.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = cc.conn.Close() })()
	if err := cc.converse(over); err != nil && !over.Load() {
		cc.note(err)
	}
}

func (cc *clientConn) note(err error) {
	cc.wrong++ // also when it does not count: nothing may go wrong
	if cc.problem == nil {
		cc.problem = err
	}
}

func (cc *clientConn) converse(over *atomic.Bool) error {
	_, err := cc.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		cc.frames.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: ampleRoom}),
		cc.frames.WriteWindowUpdate(0, ampleRoom))
	for err == nil && (!over.Load() || len(cc.flying) > 0) {
		for err == nil && len(cc.idle) > 0 && cc.room > 0 && !over.Load() {
			err = cc.ask()
		}
		if err == nil && cc.in.Buffered() == 0 {
			err = cc.out.Flush()
		}
		if err == nil && (len(cc.flying) > 0 || cc.room <= 0) {
			err = cc.hear()
		}
	}
	return err
}

// ask sends the next question.
func (cc *clientConn) ask() error {
	c := cc.idle[len(cc.idle)-1]
	cc.idle = cc.idle[:len(cc.idle)-1]
	question := cc.questions[cc.next%len(cc.questions)]
	*c = flight{reply: c.reply[:0]}
	if cc.next%sampled == 0 {
		c.begun = time.Now()
	}
	cc.next++
	block := cc.again
	if cc.stream == 1 {
		block = cc.first
	}
	cc.body = append(cc.body[:0], 0)
	cc.body = binary.BigEndian.AppendUint32(cc.body, uint32(len(question)))
	cc.body = append(cc.body, question...)
	cc.flying[cc.stream] = c
	err := errors.Join(
		cc.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: cc.stream, BlockFragment: block, EndHeaders: true}),
		cc.frames.WriteData(cc.stream, true, cc.body))
	cc.room -= int64(len(cc.body))
	cc.stream += 2
	return err
}

// hear reads a frame.
func (cc *clientConn) hear() error {
	frame, err := cc.frames.ReadFrame()
	if err != nil {
		return err
	}
	c := cc.flying[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.DataFrame:
		if c == nil {
			return fmt.Errorf("an answer to nobody: %v", f)
		}
		c.reply = append(c.reply, f.Data()...)
		if f.StreamEnded() {
			return errors.New("an answer without trailers")
		}
	case *http2.HeadersFrame:
		if c == nil || !f.HeadersEnded() {
			return fmt.Errorf("headers of nobody, or more than a frame of them: %v", f)
		}
		cc.ended = c
		if _, err := cc.headers.Write(f.HeaderBlockFragment()); err != nil {
			return err
		}
		if f.StreamEnded() {
			cc.end(f.StreamID, c)
		}
		return cc.headers.Close()
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			cc.room += int64(f.Increment)
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return cc.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return cc.frames.WritePing(true, f.Data)
		}
	case *http2.RSTStreamFrame, *http2.GoAwayFrame:
		return fmt.Errorf("the server gives up: %v", f)
	}
	return nil
}

// end looks at a whole answer.
func (cc *clientConn) end(stream uint32, c *flight) {
	delete(cc.flying, stream)
	cc.idle = append(cc.idle, c)
	if err := cc.check(c); err != nil {
		cc.note(err)
		return
	}
	if !cc.counting.Load() {
		return
	}
	cc.calls++
	if !c.begun.IsZero() {
		cc.times = append(cc.times, time.Since(c.begun))
	}
}

func (cc *clientConn) check(c *flight) error {
	if c.status != "0" {
		return fmt.Errorf("%s is %q", statusHeader, c.status)
	}
	if len(c.reply) < prefixBytes || c.reply[0] != 0 || int(binary.BigEndian.Uint32(c.reply[1:])) != len(c.reply)-prefixBytes {
		return fmt.Errorf("an answer of %d bytes that is not a message", len(c.reply))
	}
	var a answer
	if err := a.read(c.reply[prefixBytes:]); err != nil {
		return err
	}
	if !a.ok || a.statuses != cc.statuses {
		return fmt.Errorf("%d statuses, and OK is %t", a.statuses, a.ok)
	}
	return nil
}
