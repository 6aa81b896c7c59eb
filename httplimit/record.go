package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// record returns w, wrapped to record the status. The result can do what w can: flush, be
// hijacked, copy from a reader, and the rest by Unwrap.
func (s *visitRecorder) record(w http.ResponseWriter) http.ResponseWriter {
	recorder := recordingWriter{ResponseWriter: w, recorder: s}
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

// recordingWriter records the status of the answer.
type recordingWriter struct {
	http.ResponseWriter
	recorder *visitRecorder
}

// Unwrap is for http.ResponseController: deadlines, full duplex.
func (w recordingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w recordingWriter) WriteHeader(status int) {
	w.recorder.answered(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w recordingWriter) Write(b []byte) (int, error) {
	w.recorder.answered(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString saves io.WriteString a copy.
func (w recordingWriter) WriteString(s string) (int, error) {
	w.recorder.answered(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// CloseNotify is for frameworks that panic without it, as gin does.
func (w recordingWriter) CloseNotify() <-chan bool { return closeNotify(w.ResponseWriter) }

// ReadFrom lets io.Copy reach the server's own writer, which uses sendfile. Copying zero
// bytes sends no status.
func (w recordingWriter) ReadFrom(src io.Reader) (int64, error) {
	status := w.recorder.answering(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, src)
	if n > 0 {
		w.recorder.settle(status)
	}
	return n, err
}

// FlushError is for http.ResponseController, which would otherwise flush past this writer, or
// lose the error. If the writer below cannot flush, no status is sent.
func (w recordingWriter) FlushError() error {
	status := w.recorder.answering(http.StatusOK)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.recorder.settle(status)
	}
	return err
}

// recordingFlusher is for the handlers that ask for an http.Flusher.
type recordingFlusher struct{ recordingWriter }

func (w recordingFlusher) Flush() { _ = w.FlushError() }

// recordingHijacker can be hijacked; the status is not known then.
type recordingHijacker struct{ recordingWriter }

func (w recordingHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.recorder.settle(unknown)
	}
	return conn, buf, err
}

// recordingHijackFlusher can do both.
type recordingHijackFlusher struct{ recordingHijacker }

func (w recordingHijackFlusher) Flush() { _ = w.FlushError() }

var (
	_ io.ReaderFrom   = recordingWriter{}
	_ io.StringWriter = recordingWriter{}
	_ http.Flusher    = recordingFlusher{}
	_ http.Hijacker   = recordingHijacker{}
	_ http.Flusher    = recordingHijackFlusher{}
)
