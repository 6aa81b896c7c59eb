package listen

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// framing follows the requests of an HTTP/1 connection while net/http reads them. It finds
// what net/http does not report: a request with both Content-Length and Transfer-Encoding,
// or with the latter in HTTP/1.0. Two servers may disagree about the end of such a request,
// and a second one can be smuggled past the first server. It also finds headers that are
// folded into the next line, which net/http joins. It stops where net/http returns an error.
//
// It keeps no more than the start of a line.
type framing struct {
	heads   int64        // of requests, so far
	bad     atomic.Int64 // the number of the request to refuse; 0 means none
	folded  atomic.Bool  // it has a folded header
	ignored atomic.Bool  // this is not HTTP, or no longer
	state   framingState
	left    uint64 // bytes of the body or chunk to come
	line    [64]byte
	n       int     // bytes of line that are used
	tail    [9]byte // the end of the request line, with the version

	length, coding, http11 bool   // what the request has: the two headers, and that version
	size                   uint64 // Content-Length
}

// framingState is what comes next.
type framingState uint8

const (
	requestLine framingState = iota
	headerLine
	bodyData
	chunkLine
	chunkData
	chunkEnd
	trailerLine
)

// inBody reports whether the client has begun a body and not sent its end, or sends
// something that cannot be followed.
func (f *framing) inBody() bool {
	return f.ignored.Load() || f.state != requestLine && f.state != headerLine
}

// betweenChunks reports whether the client has sent complete chunks and not begun another.
func (f *framing) betweenChunks() bool {
	return !f.ignored.Load() && f.state == chunkLine && f.n == 0
}

// observe is called with what was read from the connection.
func (f *framing) observe(p []byte) {
	for len(p) > 0 && !f.ignored.Load() {
		if f.state == bodyData || f.state == chunkData {
			n := min(f.left, uint64(len(p)))
			p, f.left = p[n:], f.left-n
			if f.left > 0 {
				return
			}
			if f.state == bodyData {
				f.state = requestLine
			} else {
				f.state = chunkEnd
			}
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			f.keep(p)
			return
		}
		f.keep(p[:end])
		p = p[end+1:]
		f.endLine()
		f.n = 0
	}
}

// keep adds p to the current line, of which it keeps the start; of a request line, also the end.
func (f *framing) keep(p []byte) {
	f.n += copy(f.line[f.n:], p)
	if f.state == requestLine {
		if over := len(p) - len(f.tail); over >= 0 {
			copy(f.tail[:], p[over:])
		} else {
			copy(f.tail[:], f.tail[len(p):])
			copy(f.tail[len(f.tail)-len(p):], p)
		}
	}
}

// endLine is called at the end of a line, and chooses what comes next.
func (f *framing) endLine() {
	line := bytes.TrimSuffix(f.line[:f.n], []byte("\r"))
	switch f.state {
	case requestLine:
		if len(line) > 0 { // net/http accepts empty lines after a POST
			f.startHead()
		}
	case headerLine:
		if len(line) > 0 {
			f.header(line)
		} else {
			f.endHead()
		}
	case chunkLine:
		f.chunk(line)
	case chunkEnd:
		f.state = chunkLine
		f.stopIf(len(line) > 0)
	case trailerLine:
		if len(line) == 0 {
			f.state = requestLine
		}
	}
}

// startHead is called after a request line.
func (f *framing) startHead() {
	tail := f.tail[1:]
	if f.tail[8] == '\r' {
		tail = f.tail[:8]
	}
	f.http11 = string(tail) == "HTTP/1.1"
	f.length, f.coding, f.size = false, false, 0
	f.state = headerLine
}

// header looks for Content-Length and Transfer-Encoding. Such a line that does not fit is refused,
// since no honest value is that long. So is a folded line: some servers append it to the header
// before, others take it for another.
func (f *framing) header(line []byte) {
	if line[0] == ' ' || line[0] == '\t' {
		f.folded.Store(true)
		f.refuseIf(true)
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	length := bytes.EqualFold(name, []byte("Content-Length"))
	coding := bytes.EqualFold(name, []byte("Transfer-Encoding"))
	if !length && !coding {
		return
	}
	f.refuseIf(f.n == len(f.line))
	f.coding = f.coding || coding
	if length {
		n, err := strconv.ParseUint(string(bytes.Trim(value, " \t")), 10, 63)
		f.length, f.size = true, n
		f.refuseIf(err != nil)
	}
}

// refuseIf marks the current request as one to refuse, if it has a trick.
func (f *framing) refuseIf(trick bool) {
	if trick {
		f.bad.CompareAndSwap(0, f.heads+1)
	}
}

// stopIf stops following the connection, if net/http returns an error here.
func (f *framing) stopIf(lost bool) {
	if lost {
		f.ignored.Store(true)
	}
}

// endHead is called after the headers: now it is known how the body ends.
func (f *framing) endHead() {
	f.refuseIf(f.coding && (f.length || !f.http11))
	f.heads++
	switch {
	case f.bad.Load() > 0:
		f.ignored.Store(true)
	case f.coding:
		f.state = chunkLine
	case f.size > 0:
		f.state, f.left = bodyData, f.size
	default:
		f.state = requestLine
	}
}

// chunk reads the line with the size of a chunk. The last chunk has the size 0.
func (f *framing) chunk(line []byte) {
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 64)
	f.stopIf(err != nil)
	if f.state, f.left = chunkData, n; n == 0 {
		f.state = trailerLine
	}
}
