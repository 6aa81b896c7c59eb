package gateway

import (
	"bytes"
	"net/http"
	"strings"
)

// plainHead is the head of an answer that every parser reads in the same way: HTTP/1.1, a
// final status, lines without anything odd, and a Content-Length unless there is no body.
// Most answers have one. Any other is left to http.ReadResponse.
type plainHead struct {
	status int
	length int64 // Content-Length; -1 if there is none
	close  bool  // the upstream closes the connection
	size   int   // bytes of the head, with the empty line
	lines  [mostPlainLines]plainLine
	n      int
}

// plainLine is a header line, by offsets into the head.
type plainLine struct{ name, colon, value, end uint16 }

// A plain head has at most so many header lines, and bytes.
const (
	mostPlainLines = 32
	mostPlainBytes = upstreamBuffer
)

// plainness is what is known of a head.
type plainness int

const (
	isPlain  plainness = iota
	isShort            // more bytes are needed
	notPlain           // http.ReadResponse has to read it
)

const plainVersion = "HTTP/1.1 "

// parse reads a head from the bytes that have come, at most mostPlainBytes, of an answer to a
// request with that method.
func (p *plainHead) parse(b []byte, method string) plainness {
	p.length, p.close, p.n = -1, false, 0
	line, at, found := plainCut(b, 0)
	if found != isPlain {
		return found
	}
	if !p.statusLine(line) {
		return notPlain
	}
	for {
		start := at
		if line, at, found = plainCut(b, start); found != isPlain {
			return found
		}
		if len(line) == 0 {
			break
		}
		if p.n == len(p.lines) || !p.headerLine(line, start) {
			return notPlain
		}
	}
	p.size = at
	if p.length < 0 && !p.bodiless(method) {
		return notPlain
	}
	return isPlain
}

// plainCut returns the line that begins at start, without its CRLF, and where the next one
// begins.
func plainCut(b []byte, start int) (line []byte, next int, found plainness) {
	n := bytes.IndexByte(b[start:], '\n')
	switch {
	case n < 0:
		return nil, 0, isShort
	case n == 0 || b[start+n-1] != '\r':
		return nil, 0, notPlain
	}
	return b[start : start+n-1], start + n + 1, isPlain
}

// statusLine reads "HTTP/1.1 200 OK". It returns false if the line is not plain.
func (p *plainHead) statusLine(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte(plainVersion))
	if !ok || len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' {
		return false
	}
	p.status = 0
	for _, c := range rest[:3] {
		if c < '0' || c > '9' {
			return false
		}
		p.status = 10*p.status + int(c-'0')
	}
	return p.status >= 200
}

// headerLine reads a line that begins at offset start. It returns false if the line is not plain.
func (p *plainHead) headerLine(line []byte, start int) bool {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return false
	}
	if !isToken(line[:colon]) {
		return false
	}
	value, end := colon+1, len(line)
	for value < end && isBlank(line[value]) {
		value++
	}
	for value < end && isBlank(line[end-1]) {
		end--
	}
	for _, c := range line[value:end] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	p.lines[p.n] = plainLine{uint16(start), uint16(start + colon), uint16(start + value), uint16(start + end)}
	p.n++
	return p.interpret(line[:colon], line[value:end])
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// isTokenByte says of each byte whether the name of a header may contain it.
var isTokenByte = func() (is [256]bool) {
	for c := range is {
		is[c] = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0
	}
	return is
}()

// isToken reports whether s may be the name of a header.
func isToken[S string | []byte](s S) bool {
	for i := range len(s) {
		if !isTokenByte[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// interpret reads what a header says about the connection or the body. It returns false if that
// makes the head not plain.
func (p *plainHead) interpret(name, value []byte) bool {
	switch {
	case isWord(name, "Content-Length"):
		return p.contentLength(value)
	case isWord(name, "Connection"):
		closes := isWord(value, "close")
		p.close = p.close || closes
		return closes || isWord(value, "keep-alive")
	}
	return !isWord(name, "Transfer-Encoding") && !isWord(name, "Trailer") &&
		!isWord(name, "Pragma") // which http.ReadResponse translates
}

// isWord reports whether b is the word, in any case of letters.
func isWord(b []byte, word string) bool {
	return len(b) == len(word) && strings.EqualFold(string(b), word)
}

// contentLength reads a Content-Length. It returns false if that is not a plain number, or not the
// only one.
func (p *plainHead) contentLength(value []byte) bool {
	if p.length >= 0 || len(value) == 0 || len(value) > 18 {
		return false
	}
	n := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
		n = 10*n + int64(c-'0')
	}
	p.length = n
	return true
}

// bodiless reports whether the answer to a request with that method has no body, whatever
// its headers say.
func (p *plainHead) bodiless(method string) bool {
	return method == http.MethodHead || p.status == http.StatusNoContent || p.status == http.StatusNotModified
}

// addTo adds the header to a. b is what was parsed; nothing of it is kept.
func (p *plainHead) addTo(a *answerHeader, b []byte) {
	text := string(b[:p.size])
	values := make([]string, p.n)
	for i, l := range p.lines[:p.n] {
		values[i] = text[l.value:l.end]
		a.take(http.CanonicalHeaderKey(text[l.name:l.colon]), values[i:i+1:i+1])
	}
}
