package ginlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// writer is what handlers of gin write to inside the middleware. It passes everything
// through the writer that httplimit made of gin's, once it is final: gin lets a status be
// changed until it is written.
type writer struct {
	gin.ResponseWriter                     // gin's own
	through            http.ResponseWriter // writes to gin's own
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.through }

func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.through.WriteHeader(w.Status())
		w.ResponseWriter.WriteHeaderNow()
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeaderNow()
	return w.through.Write(b)
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	return io.WriteString(w.through, s)
}

// ReadFrom lets io.Copy reach the writers below.
func (w *writer) ReadFrom(src io.Reader) (int64, error) {
	w.WriteHeaderNow()
	return io.Copy(w.through, src)
}

func (w *writer) Flush() {
	w.WriteHeaderNow()
	w.ResponseWriter.Flush()
}

func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.through).Hijack()
}
