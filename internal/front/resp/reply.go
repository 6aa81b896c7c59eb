package resp

import (
	"strconv"
	"time"
)

// reply is what is to be written to a client. Its methods append to it.
type reply struct {
	out  []byte
	resp int // the version of the protocol: 2 or 3
}

// small are integers as they are sent, most of which are small.
var small = func() (all [1024]string) {
	for i := range all {
		all[i] = ":" + strconv.Itoa(i) + "\r\n"
	}
	return all
}()

func (r *reply) int(n int64) {
	if uint64(n) < uint64(len(small)) {
		r.out = append(r.out, small[n]...)
		return
	}
	if n == -1 {
		r.out = append(r.out, ":-1\r\n"...)
		return
	}
	r.out = strconv.AppendInt(append(r.out, ':'), n, 10)
	r.end()
}

func (r *reply) end() { r.out = append(r.out, '\r', '\n') }

func (r *reply) head(kind byte, n int) {
	r.out = strconv.AppendInt(append(r.out, kind), int64(n), 10)
	r.end()
}

func (r *reply) array(n int) { r.head('*', n) }

// pairs begins a map of n keys with their values, which is an array of both in RESP2.
func (r *reply) pairs(n int) {
	if r.resp == 3 {
		r.head('%', n)
	} else {
		r.head('*', 2*n)
	}
}

func (r *reply) simple(s string) {
	r.out = append(append(r.out, '+'), s...)
	r.end()
}

// raw appends s, which is in the form of the protocol already.
func (r *reply) raw(s string) { r.out = append(r.out, s...) }

func (r *reply) ok() { r.out = append(r.out, "+OK\r\n"...) }

func (r *reply) bulk(s string) {
	r.head('$', len(s))
	r.out = append(r.out, s...)
	r.end()
}

func (r *reply) bytes(b []byte) {
	r.head('$', len(b))
	r.out = append(r.out, b...)
	r.end()
}

// text appends a text for people to read: in RESP3, a verbatim string.
func (r *reply) text(s string) {
	if r.resp != 3 {
		r.bulk(s)
		return
	}
	r.head('=', len(s)+4)
	r.out = append(append(r.out, "txt:"...), s...)
	r.end()
}

func (r *reply) null() {
	if r.resp == 3 {
		r.out = append(r.out, "_\r\n"...)
	} else {
		r.out = append(r.out, "$-1\r\n"...)
	}
}

// maxError bounds an error, which may quote what the client has sent.
const maxError = 512

// error appends an error, whose first word is its code. Whatever it quotes, it is one line.
func (r *reply) error(text string) {
	r.out = append(r.out, '-')
	for i := range min(len(text), maxError) {
		c := text[i]
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		r.out = append(r.out, c)
	}
	r.end()
}

// seconds returns a time as redis-cell does: rounded up to a second, but down if less than a
// millisecond is above one.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		s++
	}
	return s
}

// milliseconds rounds up: a client that waits for less would come too early.
func milliseconds(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
