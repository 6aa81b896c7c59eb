package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/front/listen"
)

// tunnel answers a request whose upstream has switched protocols, and passes on what both
// sides send until they have ended. An error means that the client has got no answer.
func (o *outgoing) tunnel(res *http.Response) error {
	upstream, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		return errSwitched
	}
	defer upstream.Close()
	asked, switched := upgradeOf(o.in.Header), upgradeOf(res.Header)
	if asked == "" || len(asked) != len(switched) || !strings.EqualFold(asked, switched) {
		return fmt.Errorf("the upstream switched to %q when %q was asked for", switched, asked)
	}
	conn, buf, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return fmt.Errorf("the connection cannot become a tunnel: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(o.in.Context(), func() { _ = upstream.Close() })()
	o.answer.takeSwitch(res.Header)
	if err := writeSwitch(buf.Writer, o.answer.header); err != nil {
		return nil // the client is gone
	}
	ended := make(chan error, 2)
	go func() { ended <- pour(upstream, conn) }()
	go func() { ended <- pour(conn, upstream) }()
	if <-ended == nil {
		o.awaitOtherHalf(ended)
	}
	return nil
}

// awaitOtherHalf waits until the other half of a tunnel ends, too. A client that has ended its
// half is not read from any more, so this is where a silent upstream is noticed.
func (o *outgoing) awaitOtherHalf(ended <-chan error) {
	limit := o.x.client.SilenceLimit()
	if limit == 0 {
		<-ended
		return
	}
	silence := time.NewTicker(limit)
	defer silence.Stop()
	sent := o.x.writer.sent.Load()
	for {
		select {
		case <-ended:
			return
		case <-silence.C:
			before := sent
			if sent = o.x.writer.sent.Load(); sent == before {
				return
			}
		}
	}
}

// writeSwitch writes the head of a 101.
func writeSwitch(w *bufio.Writer, h http.Header) error {
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", http.StatusSwitchingProtocols, http.StatusText(http.StatusSwitchingProtocols))
	_ = h.WriteSubset(w, unframed)
	_, _ = io.WriteString(w, "\r\n")
	return w.Flush() // or what went wrong before
}

// unframed are headers that an answer without a body does not have.
var unframed = map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Trailer": true}

var errNoHalfClose = errors.New("one side has ended")

// pour copies until from has ended, and then ends that direction of to. If it cannot, the
// tunnel is over: then it returns an error.
func pour(to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil {
		return err
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errNoHalfClose
}

// tunnelConn is a hijacked connection that counts what is sent to the client.
type tunnelConn struct {
	net.Conn
	sent  *atomic.Int64
	early *bytes.Reader // what the client sent after its request, before the response
}

func (t tunnelConn) Read(b []byte) (int, error) {
	if t.early.Len() > 0 {
		return t.early.Read(b)
	}
	return t.Conn.Read(b)
}

func (t tunnelConn) Write(b []byte) (int, error) {
	n, err := t.Conn.Write(b)
	t.sent.Add(int64(n))
	return n, err
}

// CloseWrite tells the client that the upstream has closed its side. The client then has
// listen.Linger to close its own.
func (t tunnelConn) CloseWrite() error {
	_ = t.SetReadDeadline(time.Now().Add(listen.Linger)) // it may be closed already
	return listen.CloseWrite(t.Conn)
}
