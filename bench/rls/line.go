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

// line is a connection with several calls in flight. It writes and reads the frames of gRPC
// itself, in one goroutine, with one write for all answers that came together: a client of
// grpc-go takes as much of the cores as the server that is measured, and Envoy's does not.
type line struct {
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
	begun  time.Time // zero: it is not timed
	said   []byte    // the answer: a prefix and the message
	status string    // grpc-status
}

const (
	prefixBytes  = 5       // of a message: a flag and its length
	ampleRoom    = 1 << 30 // bytes that the server may send: more than in any heat
	initialRoom  = 1<<16 - 1
	statusHeader = "grpc-status"
)

// dial opens a line for so many calls in flight.
func dial(ctx context.Context, address string, questions [][]byte, statuses, calls int, counting *atomic.Bool) (*line, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &line{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10),
		questions: questions, next: rand.IntN(len(questions)), statuses: statuses, counting: counting,
		stream: 1, room: initialRoom, flying: make(map[uint32]*flight, calls),
	}
	l.frames = http2.NewFramer(l.out, l.in)
	l.frames.SetReuseFrames()
	l.headers = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == statusHeader {
			l.ended.status = f.Value
		}
	})
	l.first, l.again = requestHeaders(address)
	for range calls {
		l.idle = append(l.idle, new(flight))
	}
	return l, nil
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
func (l *line) run(ctx context.Context, over *atomic.Bool) {
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	if err := l.converse(over); err != nil && !over.Load() {
		l.note(err)
	}
}

func (l *line) note(err error) {
	l.wrong++ // also when it does not count: nothing may go wrong
	if l.problem == nil {
		l.problem = err
	}
}

func (l *line) converse(over *atomic.Bool) error {
	_, err := l.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		l.frames.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: ampleRoom}),
		l.frames.WriteWindowUpdate(0, ampleRoom))
	for err == nil && (!over.Load() || len(l.flying) > 0) {
		for err == nil && len(l.idle) > 0 && l.room > 0 && !over.Load() {
			err = l.ask()
		}
		if err == nil && l.in.Buffered() == 0 {
			err = l.out.Flush()
		}
		if err == nil && (len(l.flying) > 0 || l.room <= 0) {
			err = l.hear()
		}
	}
	return err
}

// ask sends the next question.
func (l *line) ask() error {
	c := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	question := l.questions[l.next%len(l.questions)]
	*c = flight{said: c.said[:0]}
	if l.next%sampled == 0 {
		c.begun = time.Now()
	}
	l.next++
	block := l.again
	if l.stream == 1 {
		block = l.first
	}
	l.body = append(l.body[:0], 0)
	l.body = binary.BigEndian.AppendUint32(l.body, uint32(len(question)))
	l.body = append(l.body, question...)
	l.flying[l.stream] = c
	err := errors.Join(
		l.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: l.stream, BlockFragment: block, EndHeaders: true}),
		l.frames.WriteData(l.stream, true, l.body))
	l.room -= int64(len(l.body))
	l.stream += 2
	return err
}

// hear reads a frame.
func (l *line) hear() error {
	frame, err := l.frames.ReadFrame()
	if err != nil {
		return err
	}
	c := l.flying[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.DataFrame:
		if c == nil {
			return fmt.Errorf("an answer to nobody: %v", f)
		}
		c.said = append(c.said, f.Data()...)
		if f.StreamEnded() {
			return errors.New("an answer without trailers")
		}
	case *http2.HeadersFrame:
		if c == nil || !f.HeadersEnded() {
			return fmt.Errorf("headers of nobody, or more than a frame of them: %v", f)
		}
		l.ended = c
		if _, err := l.headers.Write(f.HeaderBlockFragment()); err != nil {
			return err
		}
		if f.StreamEnded() {
			l.end(f.StreamID, c)
		}
		return l.headers.Close()
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			l.room += int64(f.Increment)
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return l.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return l.frames.WritePing(true, f.Data)
		}
	case *http2.RSTStreamFrame, *http2.GoAwayFrame:
		return fmt.Errorf("the server gives up: %v", f)
	}
	return nil
}

// end looks at a whole answer.
func (l *line) end(stream uint32, c *flight) {
	delete(l.flying, stream)
	l.idle = append(l.idle, c)
	if err := l.check(c); err != nil {
		l.note(err)
		return
	}
	if !l.counting.Load() {
		return
	}
	l.calls++
	if !c.begun.IsZero() {
		l.times = append(l.times, time.Since(c.begun))
	}
}

func (l *line) check(c *flight) error {
	if c.status != "0" {
		return fmt.Errorf("%s is %q", statusHeader, c.status)
	}
	if len(c.said) < prefixBytes || c.said[0] != 0 || int(binary.BigEndian.Uint32(c.said[1:])) != len(c.said)-prefixBytes {
		return fmt.Errorf("an answer of %d bytes that is no message", len(c.said))
	}
	var a answer
	if err := a.read(c.said[prefixBytes:]); err != nil {
		return err
	}
	if !a.ok || a.statuses != l.statuses {
		return fmt.Errorf("%d statuses, and OK is %t", a.statuses, a.ok)
	}
	return nil
}
