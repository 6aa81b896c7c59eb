package rediswire

import (
	"net"
	"testing"
)

// echo is a connection whose server has said the same answer, however often it is read.
type echo struct {
	net.Conn
	answer []byte
}

func (e *echo) Read(b []byte) (int, error)  { return copy(b, e.answer), nil }
func (e *echo) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkConn is what it costs to read along with a call of a script and its reply.
func BenchmarkConn(b *testing.B) {
	call := []byte(cmd("EVALSHA", "0123456789012345678901234567890123456789", "1", "tg:api:{user=42}", "12345678 and what else a script is told", "a check with its numbers, of some eighty bytes, as a token bucket has them here"))
	c := Wrap(&echo{answer: []byte(blobOf("12345678" + string(make([]byte, 80))))}, nil)
	into := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(call); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(into); err != nil {
			b.Fatal(err)
		}
	}
}
