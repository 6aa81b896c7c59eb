package rediswire

import (
	"bytes"
	"strconv"
)

// reader reads along with what a server sends, message by message: values of Redis'
// protocol in either version. It takes attributes, and values that do not announce their
// length, as invalid: no server sends them unasked.
type reader struct {
	seen   bool // a message was whole, ever
	pushed bool // this one is no reply

	open  bool // a message has begun
	depth int  // of arrays that are not complete
	todo  [maxDepth + 1]int
	state byte // what comes next: 't' for a type, 'l' for the rest of a line, 'b' for a blob
	typ   byte
	line  []byte // so far, if it comes in pieces
	left  int    // bytes of the blob that are still to come, with the CRLF behind it
	lim   limits // what is left of those of the message
	kept  []byte // the first bytes of the message; see limits.inspect
}

func (r *reader) between() bool { return !r.open }

// begin prepares r for a message.
func (r *reader) begin(lim limits) {
	r.open, r.depth, r.state, r.lim = true, 0, 't', lim
	r.todo[0] = 1
	r.line, r.kept = r.line[:0], r.kept[:0]
	if cap(r.kept) > maxLine { // a rare one; the next are small
		r.kept = nil
	}
}

// scan reads b until the message is whole, and returns how much of b that was.
func (r *reader) scan(b []byte) (n int, whole bool, err error) {
	for n < len(b) {
		from := n
		switch r.state {
		case 't':
			n++
			err = r.begun(b[from])
		case 'l':
			n, err = r.readLine(b, n)
		case 'b':
			n, err = r.readBlob(b, n)
		}
		if err != nil {
			return n, false, err
		}
		if r.lim.bytes -= n - from; r.lim.bytes < 0 {
			return n, false, violation("a message that is too long", r.kept)
		}
		if room := r.lim.inspect - len(r.kept); room > 0 {
			r.kept = append(r.kept, b[from:n][:min(room, n-from)]...)
		}
		if !r.open {
			return n, true, nil
		}
	}
	return n, false, nil
}

// begun notes the type of a value, or reports what is wrong with it.
func (r *reader) begun(typ byte) error {
	switch typ {
	case '+', '-', ':', '$', '*', '_', '%', '~', ',', '#', '!', '=', '(':
	case '>':
		if r.depth > 0 {
			return violation("a push inside of a reply", r.kept)
		}
	default:
		return violation("not Redis' protocol", nil)
	}
	r.typ, r.state = typ, 'l'
	return nil
}

// readLine reads b from n on up to the end of the line, and returns where in b it has stopped.
func (r *reader) readLine(b []byte, n int) (int, error) {
	end := bytes.IndexByte(b[n:], '\n')
	if end < 0 {
		if r.line = append(r.line, b[n:]...); len(r.line) > maxLine {
			return n, violation("a line that is too long", r.line)
		}
		return len(b), nil
	}
	line := b[n : n+end+1]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line = r.line
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(text) > maxLine || bytes.IndexByte(text, '\r') >= 0 {
		return n, violation("a line that is too long or does not end in CRLF", line)
	}
	err := r.value(text)
	r.line = r.line[:0]
	return n + end + 1, err
}

// value takes the first line of a value, or reports what is wrong with it.
func (r *reader) value(text []byte) error {
	switch r.typ {
	case '$', '!', '=':
		n, ok := length(text, maxBlob)
		if !ok || n < 0 && r.typ != '$' {
			return violation("a blob of an invalid length", text)
		}
		if n >= 0 {
			r.left, r.state = n+2, 'b'
			return nil
		}
	case '*', '~', '>', '%':
		n, ok := length(text, 1<<20)
		if !ok || n < 0 && r.typ != '*' {
			return violation("an array of an invalid length", text)
		}
		if r.typ == '%' {
			n *= 2
		}
		return r.enter(n, text)
	case ':':
		if _, err := strconv.ParseInt(string(text), 10, 64); err != nil {
			return violation("an invalid number", text)
		}
	case '_':
		if len(text) > 0 {
			return violation("an invalid null", text)
		}
	case '#':
		if string(text) != "t" && string(text) != "f" {
			return violation("an invalid boolean", text)
		}
	}
	r.done()
	return nil
}

// length reads a length. ok is false if it is above most, or no length; -1 is that of a null.
func length(text []byte, most int) (n int, ok bool) {
	if string(text) == "-1" {
		return -1, true
	}
	if len(text) == 0 || len(text) > 8 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, n <= most
}

// enter goes into an array of n elements.
func (r *reader) enter(n int, text []byte) error {
	if r.lim.elements -= max(n, 0); r.lim.elements < 0 {
		return violation("too many elements in a message", text)
	}
	if n <= 0 {
		r.done()
		return nil
	}
	if r.depth == maxDepth {
		return violation("too many nested arrays", text)
	}
	r.depth++
	r.todo[r.depth], r.state = n, 't'
	return nil
}

// readBlob passes over a blob, checks that it ends where it should, and returns where in b it has stopped.
func (r *reader) readBlob(b []byte, n int) (int, error) {
	if r.left > 2 {
		skip := min(r.left-2, len(b)-n)
		r.left -= skip
		return n + skip, nil
	}
	if b[n] != "\n\r"[r.left-1] {
		return n, violation("a blob that does not end where it should", b[n:])
	}
	if r.left--; r.left == 0 {
		r.done()
	}
	return n + 1, nil
}

// done ends a value, and every array that it was the last of.
func (r *reader) done() {
	r.state = 't'
	for r.todo[r.depth]--; r.todo[r.depth] == 0; r.todo[r.depth]-- {
		if r.depth == 0 {
			r.open = false
			return
		}
		r.depth--
	}
}
