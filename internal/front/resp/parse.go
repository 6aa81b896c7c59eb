package resp

import (
	"bytes"
	"errors"
)

// reader finds commands in what a client has sent. Arguments lie in its buffer: they are
// valid until more is read into it.
type reader struct {
	buf  []byte
	r, w int // buf[r:w] is what was received and not yet taken

	// The command that begins at r and is not complete.
	scan int    // how many of its bytes were read
	left int    // arguments that are still to come
	bulk int    // length of the argument that is being read, -1: not known yet
	ends []span // of the arguments so far, from r on

	args [][]byte
}

type span struct{ from, to int }

// protocolError is a mistake after which nothing more can be understood. It is told to the
// client in the words of Redis.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// errHTTP is returned for what only a browser that was tricked into it would send.
var errHTTP = errors.New("this is HTTP")

// partial reports whether a command has begun that is not complete.
func (p *reader) partial() bool { return p.r < p.w || p.left > 0 }

// next returns the next complete command, or nil if there is none. One without arguments
// is skipped, as Redis does.
func (p *reader) next(b *bounds) ([][]byte, error) {
	for {
		if p.left == 0 {
			if p.r == p.w {
				p.r, p.w = 0, 0
				return nil, nil
			}
			if p.buf[p.r] != '*' {
				args, done, err := p.inline(b)
				if done && len(args) == 0 {
					continue
				}
				return args, err
			}
			n, size, err := length(p.buf[p.r+1:p.w], "invalid multibulk length")
			if size == 0 || err != nil {
				return nil, err
			}
			switch {
			case n > b.args && b.args < MaxArgs:
				return nil, protocolError("unauthenticated multibulk length")
			case n > b.args:
				return nil, protocolError("invalid multibulk length")
			case n <= 0:
				p.r += 1 + size
				continue
			}
			p.left, p.scan, p.bulk, p.ends = n, 1+size, -1, p.ends[:0]
		}
		done, err := p.multibulk(b)
		if !done || err != nil {
			return nil, err
		}
		return p.take(), nil
	}
}

// multibulk reads on in the command that has begun. It reports whether it is complete.
func (p *reader) multibulk(b *bounds) (bool, error) {
	got := p.buf[p.r:p.w]
	at, left, bulk := p.scan, p.left, p.bulk // copies stay in registers
	for ; left > 0; left-- {
		if bulk < 0 {
			if at == len(got) {
				break
			}
			if got[at] != '$' {
				return false, protocolError("expected '$', got '" + printable(got[at]) + "'")
			}
			n, size, err := length(got[at+1:], "invalid bulk length")
			if err != nil {
				return false, err
			}
			if size == 0 {
				break
			}
			switch {
			case n > b.bulk && b.bulk < MaxBulk:
				return false, protocolError("unauthenticated bulk length")
			case n < 0 || n > b.bulk:
				return false, protocolError("invalid bulk length")
			case at+1+size+n+2 > b.command:
				return false, protocolError("too big command")
			}
			at += 1 + size
			bulk = n
		}
		if len(got)-at < bulk+2 {
			break
		}
		end := at + bulk
		if got[end] != '\r' || got[end+1] != '\n' {
			return false, protocolError("expected CRLF after a bulk string")
		}
		p.ends = append(p.ends, span{at, end})
		at, bulk = end+2, -1
	}
	p.scan, p.left, p.bulk = at, left, bulk
	return left == 0, nil
}

// take returns the command that is complete, and goes on behind it.
func (p *reader) take() [][]byte {
	got := p.buf[p.r:p.w]
	p.args = p.args[:0]
	for _, s := range p.ends {
		p.args = append(p.args, got[s.from:s.to:s.to])
	}
	p.r += p.scan
	p.scan = 0
	return p.args
}

// maxDigits is the longest length that is read as a number.
const maxDigits = 10

// length reads a number and CRLF. size is how many bytes these take, 0 if they have not all
// arrived. The error has the text wrong.
func length(b []byte, wrong string) (n, size int, err error) {
	if len(b) >= 4 { // most have one digit or two
		ones, tens := b[1]-'0', b[0]-'0'
		switch {
		case tens <= 9 && b[1] == '\r' && b[2] == '\n':
			return int(tens), 3, nil
		case tens <= 9 && ones <= 9 && b[2] == '\r' && b[3] == '\n':
			return 10*int(tens) + int(ones), 4, nil
		}
	}
	i, minus := 0, false
	if i < len(b) && b[i] == '-' {
		i, minus = 1, true
	}
	start := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if n = n*10 + int(b[i]-'0'); i-start >= maxDigits {
			return 0, 0, protocolError(wrong)
		}
	}
	switch {
	case i == len(b):
		return 0, 0, nil
	case b[i] != '\r' || i == start:
		return 0, 0, protocolError(wrong)
	case i+1 == len(b):
		return 0, 0, nil
	case b[i+1] != '\n':
		return 0, 0, protocolError(wrong)
	}
	if minus {
		n = -n
	}
	return n, i + 2, nil
}

// printable returns a byte as an error may show it.
func printable(c byte) string {
	if c < ' ' || c > '~' {
		return "?"
	}
	return string(rune(c))
}

// inline reads a command that was typed: words in one line, some of them in quotes. It
// reports whether there was a whole line, which may be empty.
func (p *reader) inline(b *bounds) (args [][]byte, done bool, err error) {
	got := p.buf[p.r:p.w]
	end := bytes.IndexByte(got[p.scan:], '\n')
	if end < 0 && len(got) < b.command {
		p.scan = len(got)
		return nil, false, nil
	}
	if end += p.scan; end >= b.command || end < p.scan {
		return nil, false, protocolError("too big inline request")
	}
	p.r, p.scan = p.r+end+1, 0
	line := bytes.TrimSuffix(got[:end], []byte{'\r'})
	p.args, done = words(p.args[:0], line)
	switch {
	case !done:
		return nil, false, protocolError("unbalanced quotes in request")
	case len(p.args) > b.args:
		return nil, false, protocolError("too many arguments in request")
	case len(p.args) > 0 && (equalFold(p.args[0], "post") || equalFold(p.args[0], "host:")):
		return nil, false, errHTTP
	}
	return p.args, true, nil
}
