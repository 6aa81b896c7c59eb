package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// record returns w, wrapped to learn the status. What w can do, the wrapped one
// can: flush, be hijacked, copy from a reader, and the rest by Unwrap.
func (s *stay) record(w http.ResponseWriter) http.ResponseWriter {
	recorder := recordingWriter{ResponseWriter: w, stay: s}
	_, flushes := w.(http.Flusher)
	switch hijacks := canHijack(w); {
	case hijacks && flushes:
		return recordingHijackFlusher{recordingHijacker{recorder}}
	case hijacks:
		return recordingHijacker{recorder}
	case flushes:
		return recordingFlusher{recorder}
	}
	return recorder
}

// recordingWriter learns the status of the answer.
type recordingWriter struct {
	http.ResponseWriter
	stay *stay
}

// Unwrap is for http.ResponseController: deadlines, full duplex.
func (w recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w recordingWriter) WriteHeader(status int) {
	w.stay.answered(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w recordingWriter) Write(b []byte) (int, error) {
	w.stay.answered(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString spares io.WriteString a copy.
func (w recordingWriter) WriteString(s string) (int, error) {
	w.stay.answered(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom keeps what the server's own writer makes of io.Copy: sendfile. A copy
// of nothing sends no status.
func (w recordingWriter) ReadFrom(src io.Reader) (int64, error) {
	status := w.stay.answering(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, src)
	if n > 0 {
		w.stay.status.CompareAndSwap(0, status)
	}
	return n, err
}

func (w recordingWriter) flush() {
	w.stay.answered(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// recordingFlusher is for the handlers that ask for an http.Flusher.
type recordingFlusher struct{ recordingWriter }

func (w recordingFlusher) Flush() { w.flush() }

// recordingHijacker can be hijacked: what is answered then is not known.
type recordingHijacker struct{ recordingWriter }

func (w recordingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.stay.status.CompareAndSwap(0, unknown)
	}
	return conn, buf, err
}

// recordingHijackFlusher can do both.
type recordingHijackFlusher struct{ recordingHijacker }

func (w recordingHijackFlusher) Flush() { w.flush() }

var (
	_ io.ReaderFrom   = recordingWriter{}
	_ io.StringWriter = recordingWriter{}
	_ http.Flusher    = recordingFlusher{}
	_ http.Hijacker   = recordingHijacker{}
	_ http.Flusher    = recordingHijackFlusher{}
)
