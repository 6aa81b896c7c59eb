package resp

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/store/memory"
)

// script is a connection that hands out bytes in pieces and keeps what is written.
type script struct {
	net.Conn
	in     []byte
	pieces []byte
	out    bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := len(s.in)
	if len(s.pieces) > 0 {
		n, s.pieces = int(s.pieces[0])+1, s.pieces[1:]
	}
	n = copy(b, s.in[:min(n, len(s.in))])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }

type held []tidegate.Check

func (h held) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, h...)
}

// far is a store that is asked about several commands at a time.
type far struct {
	tidegate.Store
	tidegate.Resetter
}

// play has a server of its own answer bytes that come in pieces.
func play(t *testing.T, in, pieces []byte, users ...User) []byte {
	return playOn(t, in, pieces, false, users...)
}

func playOn(t *testing.T, in, pieces []byte, isFar bool, users ...User) []byte {
	now := time.Unix(1e9, 0)
	store := memory.Open(memory.Config{MaxBytes: 1 << 20, Now: func() time.Time { return now }})
	gate := tidegate.NewGate(held{
		{Key: "k", Limit: tidegate.PerMinute(5), Cost: 1},
		{Key: "k", Limit: tidegate.Slots(2, time.Minute), Cost: 1},
	}, store)
	s := New(Options{
		Desk: desk.New(gate), Store: store, Users: users, Report: func(err error) { t.Fatal(err) },
		Observe: func(*tidegate.Request, []tidegate.Check, tidegate.Decision) {}, Access: func(*Access) {},
	})
	if isFar {
		s.o.Store, s.one = far{store, store}, nil
	}
	c := &script{in: bytes.Clone(in), pieces: pieces}
	s.done.Add(1)
	newConn(s, c).serve()
	if n := s.large.Load(); n != 0 {
		t.Fatalf("%d bytes of large buffers are left", n)
	}
	return c.out.Bytes()
}

// FuzzConnection: whatever is sent, and in whatever pieces, the answers are the same, are
// RESP, and nothing panics.
func FuzzConnection(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.wire")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			if text, ok := bytes.CutPrefix(line, []byte("> ")); ok {
				f.Add(text, []byte{})
				f.Add(append([]byte("HELLO 3\r\n"), text...), []byte{3, 1})
			}
		}
	}
	f.Add([]byte("*3\r\n$11\r\ncl.throttle\r\n$1\r\nk\r\n$1\r\n1\r\n*1\r\n$4\r\nping\r\n"), []byte{1, 2, 3, 4})
	f.Add([]byte("*2\r\n$4\r\nECHO\r\n$5000\r\n"+string(make([]byte, 5000))+"\r\n"), []byte{200})
	f.Fuzz(func(t *testing.T, in, pieces []byte) {
		whole := play(t, in, nil)
		checkReplies(t, whole)
		if parts := play(t, in, pieces); !bytes.Equal(mask(parts), mask(whole)) {
			t.Fatalf("in pieces of %v: %q\nat once: %q", pieces, parts, whole)
		}
		if there := playOn(t, in, nil, true); !bytes.Equal(mask(there), mask(whole)) {
			t.Fatalf("on a store that is far away: %q\nhere: %q", there, whole)
		}
		checkReplies(t, play(t, in, pieces, User{Name: "default", Password: "x"}))
	})
}

// mask hides what differs between two servers: tickets, whose handles and instances may be numbers of
// other lengths.
func mask(b []byte) []byte {
	for {
		at := bytes.Index(b, []byte("tt1_"))
		if at < 0 {
			return b
		}
		end := at + bytes.IndexByte(b[at:], '\r')
		if length := fmt.Appendf(nil, "$%d\r\n", end-at); bytes.HasSuffix(b[:at], length) {
			at -= len(length)
		}
		b = append(bytes.Clone(b[:at]), b[end:]...)
	}
}

// checkReplies reads all replies.
func checkReplies(t *testing.T, b []byte) {
	t.Helper()
	all := b
	for len(b) > 0 {
		var ok bool
		if b, ok = skip(b, 0); !ok {
			t.Fatalf("not RESP: %q", all)
		}
	}
}

// skip is what is behind one reply.
func skip(b []byte, depth int) ([]byte, bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 || depth > 5 || bytes.ContainsAny(line, "\r\n") {
		return nil, false
	}
	switch line[0] {
	case '+', '-', '_':
		return rest, true
	}
	n, isNumber := integer(line[1:])
	if !isNumber {
		return nil, false
	}
	switch line[0] {
	case ':':
		return rest, true
	case '$', '=':
		if n == -1 {
			return rest, true
		}
		if int64(len(rest)) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, false
		}
		return rest[n+2:], true
	case '%':
		n *= 2
	case '*':
	default:
		return nil, false
	}
	for ; n > 0 && ok; n-- {
		rest, ok = skip(rest, depth+1)
	}
	return rest, ok
}
