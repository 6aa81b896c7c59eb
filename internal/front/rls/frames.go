package rls

import "encoding/binary"

// frames follows the frames of HTTP/2 in one direction of a connection. It keeps no more than
// the header of a frame.
type frames struct {
	skip int // bytes to come that belong to no header
	n    int // bytes of head that have arrived
	head [9]byte
	last frame
}

// The kinds of frames that begin, continue and end streams, and their flags.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	flagEndStream = 1
	flagPadded    = 8
	clientPreface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	streamMask    = 1<<31 - 1
)

// frame is the header of a frame.
type frame struct {
	length uint32
	kind   byte
	flags  byte
	stream uint32
}

// ends reports whether the sender is done with the stream.
func (f *frame) ends() bool {
	return f.kind == frameReset || (f.kind == frameData || f.kind == frameHeaders) && f.flags&flagEndStream != 0
}

// observe calls f for every frame whose header is complete in p, and data, unless it is nil, for
// what p has of the payload of data frames.
func (fs *frames) observe(p []byte, f func(frame), data func(frame, []byte)) {
	for len(p) > 0 {
		if fs.skip > 0 {
			n := min(fs.skip, len(p))
			if data != nil && fs.last.kind == frameData {
				data(fs.last, p[:n])
			}
			fs.skip -= n
			p = p[n:]
			continue
		}
		n := copy(fs.head[fs.n:], p)
		fs.n += n
		p = p[n:]
		if fs.n < len(fs.head) {
			return
		}
		h := &fs.head
		length := uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2])
		fs.n, fs.skip = 0, int(length)
		fs.last = frame{length, h[3], h[4], binary.BigEndian.Uint32(h[5:]) & streamMask}
		f(fs.last)
	}
}

// messages follows the messages of gRPC in the data of a stream.
type messages struct {
	got  int64  // bytes of a message that is not complete
	left uint32 // bytes that are to come of it, behind its head
	n    int    // bytes of head that have arrived
	head [5]byte
	lost bool // it is not known where messages begin: follow only counts
}

// follow reports whether a message ends in p.
func (m *messages) follow(p []byte) (ended bool) {
	for len(p) > 0 && !m.lost {
		n := 0
		if m.left > 0 {
			n = int(min(m.left, uint32(len(p))))
			m.left -= uint32(n)
		} else if n = copy(m.head[m.n:], p); m.n+n == len(m.head) {
			m.n, m.left = 0, binary.BigEndian.Uint32(m.head[1:])
		} else {
			m.n += n
		}
		m.got += int64(n)
		p = p[n:]
		if m.left == 0 && m.n == 0 {
			ended, m.got = true, 0
		}
	}
	m.got += int64(len(p))
	return ended
}
