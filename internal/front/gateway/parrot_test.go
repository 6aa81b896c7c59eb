package gateway

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// parrot is an upstream that answers every request with the same bytes, closes the
// connection, and keeps the heads of what it got. It does not say that it closes, so a gateway
// may keep a connection, and find out too late: reclaim it before the next request.
type parrot struct {
	net.Listener
	mu     sync.Mutex
	answer string   // under mu
	piece  int      // under mu: it writes so many bytes at a time; 0 means all
	heads  []string // under mu
}

// say changes the answer.
func (p *parrot) say(answer string, piece int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.piece = answer, piece
}

func newParrot(t testing.TB, answer string) *parrot {
	t.Helper()
	p := &parrot{answer: answer}
	p.Listener = rawUpstream(t, p.serve)
	return p
}

func (p *parrot) serve(c net.Conn) {
	var raw bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &raw)))
	if err != nil {
		return
	}
	head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
	_, _ = io.Copy(io.Discard, r.Body)
	p.mu.Lock()
	p.heads = append(p.heads, head)
	answer, piece := []byte(p.answer), p.piece
	p.mu.Unlock()
	if piece == 0 {
		piece = max(1, len(answer))
	}
	for part := range slices.Chunk(answer, piece) {
		if _, err := c.Write(part); err != nil {
			return
		}
	}
}

// forget makes as if there had been no request.
func (p *parrot) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads = nil
}

// lastHead returns the lines of the last request, sorted, but for what differs from request
// to request.
func (p *parrot) lastHead() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heads) == 0 {
		return ""
	}
	request, rest, _ := strings.Cut(p.heads[len(p.heads)-1], "\r\n")
	lines := strings.Split(rest, "\r\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "X-Request-Id: ") || line == "Connection: close" || line == "Traceparent: ours" // which http.Transport and tracing send
	})
	slices.Sort(lines)
	return request + "\n" + strings.Join(lines, "\n")
}
