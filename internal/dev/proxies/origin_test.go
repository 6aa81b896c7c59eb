package proxies

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// arrival is a request as it came to the origin.
type arrival struct {
	method, target string // exactly as sent
	header         http.Header
	body           string
}

// origin is the server behind a proxy. It takes any request target, as net/http would not.
type origin struct {
	addr string

	mu       sync.Mutex
	arrivals []arrival
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	o := &origin{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

func (o *origin) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		a, err := readArrival(in)
		if err != nil {
			return
		}
		o.mu.Lock()
		o.arrivals = append(o.arrivals, a)
		o.mu.Unlock()
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\norigin\n"); err != nil {
			return
		}
	}
}

func readArrival(in *bufio.Reader) (arrival, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return arrival{}, err
	}
	line = strings.TrimRight(line, "\r\n")
	method, rest, _ := strings.Cut(line, " ")
	target := rest
	if i := strings.LastIndexByte(rest, ' '); i >= 0 {
		target = rest[:i]
	}
	header, err := textproto.NewReader(in).ReadMIMEHeader()
	if err != nil {
		return arrival{}, err
	}
	a := arrival{method: method, target: target, header: http.Header(header)}
	var body io.Reader = strings.NewReader("")
	if n, err := strconv.ParseInt(a.header.Get("Content-Length"), 10, 64); err == nil {
		body = io.LimitReader(in, n)
	} else if a.header.Get("Transfer-Encoding") == "chunked" {
		body = httputil.NewChunkedReader(in)
	}
	text, err := io.ReadAll(body)
	if err == nil && a.header.Get("Transfer-Encoding") == "chunked" {
		_, err = in.ReadString('\n') // the end of no trailers
	}
	a.body = string(text)
	return a, err
}

// reached returns what has arrived since the last call.
func (o *origin) reached() []arrival {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.arrivals
	o.arrivals = nil
	return got
}
