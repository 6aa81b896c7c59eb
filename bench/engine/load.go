package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// load asks one address over connections that are kept between heats. It
// speaks just enough HTTP/1.1 to do so: the client of net/http costs more than
// the server, and would hide what a middleware adds.
type load struct {
	request []byte
	conns   []net.Conn
	readers []*bufio.Reader
}

func dialLoad(address string) (*load, error) {
	l := &load{request: []byte("GET /users/42 HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")}
	for range connections {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, c)
		l.readers = append(l.readers, bufio.NewReader(c))
	}
	return l, nil
}

func (l *load) close() {
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// run gives the requests per second of one heat.
func (l *load) run(ctx context.Context, d time.Duration) (float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var wait sync.WaitGroup
	counts, errs := make([]int, len(l.conns)), make([]error, len(l.conns))
	start := time.Now()
	for i, conn := range l.conns {
		wait.Go(func() {
			errs[i] = conn.SetDeadline(start.Add(d + 10*time.Second))
			for errs[i] == nil && time.Since(start) < d {
				errs[i] = l.ask(conn, l.readers[i])
				counts[i]++
			}
		})
	}
	wait.Wait()
	took := time.Since(start)
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / took.Seconds(), errors.Join(errs...)
}

func (l *load) ask(conn net.Conn, r *bufio.Reader) error {
	if _, err := conn.Write(l.request); err != nil {
		return err
	}
	return readOK(r)
}

var contentLength = []byte("Content-Length: ")

// readOK reads one answer and is satisfied with a 200 of known length only.
func readOK(r *bufio.Reader) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("want a 200, got %q", status)
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSuffix(line, []byte("\r\n"))
		if len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without Content-Length")
	}
	_, err = r.Discard(length)
	return err
}
