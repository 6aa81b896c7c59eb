package gateway

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// framing follows the requests of an HTTP/1 connection while net/http reads them,
// for what that does not tell: a request with both Content-Length and
// Transfer-Encoding, or with the latter in HTTP/1.0. One server takes the one for
// the end of the request, another the other, and what is between is smuggled past
// the first. And a header that is folded into the next line, which net/http makes one.
// What net/http itself refuses is not followed further.
//
// It keeps no more than the start of a line.
type framing struct {
	heads   int64        // of requests that were read
	bad     atomic.Int64 // which of them is not to be served; 0: none
	folded  atomic.Bool  // as it has a folded header
	ignored atomic.Bool  // this is no HTTP, or no more
	expects expectation
	left    uint64 // bytes of data to come
	line    [64]byte
	n       int     // how much of line is used
	tail    [9]byte // the end of a line, for the version

	length, coding, modern bool   // what the head has: the two, HTTP/1.1
	size                   uint64 // that length
}

// expectation is what comes next.
type expectation uint8

const (
	requestLine expectation = iota
	headerLine
	data
	chunkLine
	chunkData
	chunkEnd
	trailerLine
)

// owes reports whether the client has begun a body and not sent the end of it, or sends
// what cannot be followed.
func (f *framing) owes() bool {
	return f.ignored.Load() || f.expects != requestLine && f.expects != headerLine
}

// pauses reports whether the client may be between two things that it has to say: it
// has sent whole chunks, and has not begun another.
func (f *framing) pauses() bool {
	return !f.ignored.Load() && f.expects == chunkLine && f.n == 0
}

// see is shown what was read.
func (f *framing) see(p []byte) {
	for len(p) > 0 && !f.ignored.Load() {
		if f.expects == data || f.expects == chunkData {
			n := min(f.left, uint64(len(p)))
			p, f.left = p[n:], f.left-n
			if f.left > 0 {
				return
			}
			if f.expects == data {
				f.expects = requestLine
			} else {
				f.expects = chunkEnd
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

func (f *framing) keep(p []byte) {
	f.n += copy(f.line[f.n:], p)
	if f.expects == requestLine {
		if over := len(p) - len(f.tail); over >= 0 {
			copy(f.tail[:], p[over:])
		} else {
			copy(f.tail[:], f.tail[len(p):])
			copy(f.tail[len(f.tail)-len(p):], p)
		}
	}
}

func (f *framing) endLine() {
	line := bytes.TrimSuffix(f.line[:f.n], []byte("\r"))
	switch f.expects {
	case requestLine:
		if len(line) > 0 { // net/http puts up with empty lines after a POST
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
		f.expects = chunkLine
		f.stopIf(len(line) > 0)
	case trailerLine:
		if len(line) == 0 {
			f.expects = requestLine
		}
	}
}

func (f *framing) startHead() {
	tail := f.tail[1:]
	if f.tail[8] == '\r' {
		tail = f.tail[:8]
	}
	f.modern = string(tail) == "HTTP/1.1"
	f.length, f.coding, f.size = false, false, 0
	f.expects = headerLine
}

// header looks for the two, of which a value that goes on for longer than any number
// does is a trick. So is any line that is folded: one server takes it for the header
// before it, another for one of its own.
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

func (f *framing) refuseIf(trick bool) {
	if trick {
		f.bad.CompareAndSwap(0, f.heads+1)
	}
}

func (f *framing) stopIf(lost bool) {
	if lost {
		f.ignored.Store(true)
	}
}

func (f *framing) endHead() {
	f.refuseIf(f.coding && (f.length || !f.modern))
	f.heads++
	switch {
	case f.bad.Load() > 0:
		f.ignored.Store(true)
	case f.coding:
		f.expects = chunkLine
	case f.size > 0:
		f.expects, f.left = data, f.size
	default:
		f.expects = requestLine
	}
}

func (f *framing) chunk(line []byte) {
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 64)
	f.stopIf(err != nil)
	if f.expects, f.left = chunkData, n; n == 0 {
		f.expects = trailerLine
	}
}
