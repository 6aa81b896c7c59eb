package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// answer is what the upstream says to everybody who does not ask for more.
const (
	answer      = `{"id":42,"name":"Anne","active":true}`
	answerShape = "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 09:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
)

// servedPath asks the upstream how many requests it has answered.
const servedPath = "/served"

// serveUpstream runs in the child process. It speaks just enough HTTP/1.1 for
// requests without a body: a real server would take more of the cores than some
// of the proxies, and hide what is between them.
func serveUpstream(ctx context.Context, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var served atomic.Int64
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serveConn(c, &served)
	}
}

var (
	headEnd   = []byte("\r\n\r\n")
	bigAnswer = strings.Repeat("x", bigSize)
	canned    = fmt.Appendf(nil, answerShape, len(answer), answer)
	cannedBig = fmt.Appendf(nil, answerShape, len(bigAnswer), bigAnswer)
)

// answerTo returns the body of the answer.
func answerTo(path string) string {
	if path == bigPath {
		return bigAnswer
	}
	return answer
}

func serveConn(c net.Conn, served *atomic.Int64) {
	defer c.Close()
	buf, have := make([]byte, 16<<10), 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil { // also a head that does not fit: nothing is left to read into
			return
		}
		have += n
		for {
			end := bytes.Index(buf[:have], headEnd)
			if end < 0 {
				break
			}
			reply := canned
			switch {
			case bytes.HasPrefix(buf, []byte("GET "+servedPath+" ")):
				count := strconv.FormatInt(served.Load(), 10)
				reply = fmt.Appendf(nil, answerShape, len(count), count)
			case bytes.HasPrefix(buf, []byte("GET "+bigPath+" ")):
				served.Add(1)
				reply = cannedBig
			default:
				served.Add(1)
			}
			if _, err := c.Write(reply); err != nil {
				return
			}
			have = copy(buf, buf[end+len(headEnd):have])
		}
	}
}

// The certificates are made for the race, by nobody whom others trust.
var client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// get asks over a connection of its own, so that none is left to be served.
func get(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 2*bigSize))
	return res.StatusCode, string(b), err
}

const (
	stillFor  = 100 * time.Millisecond
	stillTime = 5 * time.Second // until the upstream has to be
)

// settled returns what was served once nothing more arrives: a proxy passes on what it
// had taken when the load generator left, and that must not count in the next heat.
func settled(ctx context.Context, served func(context.Context) (int64, error)) (int64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stillTime, fmt.Errorf("requests still arrive at the upstream after %s", stillTime))
	defer cancel()
	n, err := served(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(stillFor):
		}
		before := n
		if n, err = served(ctx); err == nil && n == before {
			return n, nil
		}
	}
	return 0, err
}

// servedBy returns how many requests have arrived at the upstream.
func servedBy(ctx context.Context, upstream string) (int64, error) {
	_, body, err := get(ctx, "http://"+upstream+servedPath)
	if err != nil {
		return 0, fmt.Errorf("ask the upstream what it served: %w", err)
	}
	n, err := strconv.ParseInt(body, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("ask the upstream what it served: %w", err)
	}
	return n, nil
}
