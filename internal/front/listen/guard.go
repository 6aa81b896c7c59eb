package listen

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// guard opens a Client for each request to a handler that does not know of Clients.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := &guarded{server: s}
		g.client.Open(s, w, r, time.Now())
		g.writer = guardedWriter{ResponseWriter: w, request: g}
		if r.Body != nil && r.Body != http.NoBody {
			g.body.inner, g.body.client, g.body.openEnded = r.Body, &g.client, r.ContentLength < 0
			g.body.pending.Store(true)
			r.Body = &g.body
		}
		defer g.end()
		p := g.client.Malformed()
		if p == nil {
			p = g.client.Surplus()
		}
		if p != nil {
			p.Write(&g.writer, r.Method)
			return
		}
		next.ServeHTTP(&g.writer, r)
	})
}

// guarded is a request to such a handler.
type guarded struct {
	server *Server
	client Client
	body   guardedBody
	writer guardedWriter
}

func (g *guarded) end() {
	g.beforeHeader() // of a response that the handler left to net/http
	if !g.writer.hijacked {
		g.client.End(g.body.pending.Load())
	}
}

// beforeHeader is called before the response headers are sent.
func (g *guarded) beforeHeader() {
	if g.writer.wroteHeader || g.writer.hijacked {
		return
	}
	g.writer.wroteHeader = true
	if g.server.Draining() {
		g.writer.Header().Set("Connection", "close") // over HTTP/2, GOAWAY
	}
	if g.client.http1 && g.body.pending.Load() && !g.writer.duplex {
		g.client.DropBody() // which net/http reads before it sends the response
	}
}

type guardedBody struct {
	inner     io.ReadCloser
	client    *Client
	openEnded bool        // it has no Content-Length
	pending   atomic.Bool // it has not been read to its end
}

func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.client.ReadBody(b.inner, p)
	if err == io.EOF {
		b.pending.Store(false)
	}
	return n, err
}

func (b *guardedBody) Close() error { return b.inner.Close() }

type guardedWriter struct {
	http.ResponseWriter
	request     *guarded
	wroteHeader bool
	hijacked    bool
	duplex      bool
}

// Unwrap makes the methods of the connection available to http.ResponseController.
func (w *guardedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *guardedWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.request.beforeHeader()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *guardedWriter) Write(b []byte) (int, error) {
	w.request.beforeHeader()
	return w.request.client.Write(b)
}

// Flush implements http.Flusher.
func (w *guardedWriter) Flush() { _ = w.FlushError() }

// FlushError implements the method that http.ResponseController calls.
func (w *guardedWriter) FlushError() error {
	w.request.beforeHeader()
	return w.request.client.Flush()
}

// EnableFullDuplex implements the method that http.ResponseController calls.
func (w *guardedWriter) EnableFullDuplex() error {
	w.duplex = true
	if w.request.body.openEnded {
		w.request.client.AllowSilence()
	}
	return http.NewResponseController(w.ResponseWriter).EnableFullDuplex()
}

// Hijack implements http.Hijacker.
func (w *guardedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = err == nil
	return conn, buf, err
}
