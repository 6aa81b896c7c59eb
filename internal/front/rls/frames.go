package rls

import "encoding/binary"

// frames follows the frames of HTTP/2 in one direction of a connection. It keeps no more than
// the header of a frame.
type frames struct {
	skip int // bytes to come that belong to no header
	n    int // bytes of head
	head [9]byte
}

// The frames that begin and end streams, and their flag.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	flagEndStream = 1
	clientPreface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	streamMask    = 1<<31 - 1
)

// frame is the header of one.
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

// observe calls f for every frame that begins in p.
func (fs *frames) observe(p []byte, f func(frame)) {
	for len(p) > 0 {
		if fs.skip > 0 {
			n := min(fs.skip, len(p))
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
		f(frame{length, h[3], h[4], binary.BigEndian.Uint32(h[5:]) & streamMask})
	}
}
