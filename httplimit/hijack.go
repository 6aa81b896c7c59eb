package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// watch returns w, wrapped to notice when its connection is hijacked. A writer that cannot
// be hijacked, as over HTTP/2, is returned as it is.
func (s *slot) watch(w http.ResponseWriter) http.ResponseWriter {
	if !canHijack(w) {
		return w
	}
	watched := watchedWriter{ResponseWriter: w, slot: s}
	if _, ok := w.(http.Flusher); ok {
		return flushingWriter{watched}
	}
	return watched
}

// canHijack reports whether http.ResponseController could hijack the connection of w.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// watchedWriter notices when the connection is hijacked.
type watchedWriter struct {
	http.ResponseWriter
	slot *slot
}

// Unwrap is for http.ResponseController: deadlines, full duplex.
func (w watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buf, err
	}
	w.slot.hijack()
	return heldConn{conn, w.slot}, buf, nil
}

// CloseNotify is for frameworks that panic without it, as gin does.
func (w watchedWriter) CloseNotify() <-chan bool { return closeNotify(w.ResponseWriter) }

// closeNotify returns the channel of the http.CloseNotifier in w, found by unwrapping as
// http.ResponseController does. If there is none, it returns a channel that stays silent.
func closeNotify(w http.ResponseWriter) <-chan bool {
	for {
		switch t := w.(type) {
		case interface{ CloseNotify() <-chan bool }:
			return t.CloseNotify()
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil
		}
	}
}

// ReadFrom lets io.Copy reach the server's own writer, which uses sendfile.
func (w watchedWriter) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(w.ResponseWriter, src)
}

// WriteString saves io.WriteString a copy.
func (w watchedWriter) WriteString(s string) (int, error) {
	return io.WriteString(w.ResponseWriter, s)
}

// flushingWriter is for the handlers that ask for an http.Flusher.
type flushingWriter struct{ watchedWriter }

func (w flushingWriter) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController, which would otherwise lose the error.
func (w flushingWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// heldConn frees the slot when it is closed.
type heldConn struct {
	net.Conn
	slot *slot
}

func (c heldConn) Close() error {
	c.slot.free()
	return c.Conn.Close()
}

// CloseWrite is what a reverse proxy uses to pass on that one side is done.
func (c heldConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// NetConn returns the connection itself, for handlers that set socket options.
func (c heldConn) NetConn() net.Conn { return c.Conn }

var (
	_ http.Hijacker   = watchedWriter{}
	_ io.ReaderFrom   = watchedWriter{}
	_ io.StringWriter = watchedWriter{}
	_ http.Flusher    = flushingWriter{}
)
