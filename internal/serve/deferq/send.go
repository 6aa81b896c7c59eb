package deferq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/usage"
)

const (
	// maxResult is how much of an answer's body is kept.
	maxResult = 64 << 10
	// maxDiscard is how much more of it is read, so that the connection can be reused.
	maxDiscard = 256 << 10
	// maxResultHeader is the size up to which an answer's header is kept.
	maxResultHeader = 16 << 10
)

// attempt is the result of an attempt.
type attempt struct {
	sent       bool // false if no upstream can have received any of it
	err        error
	result     *Result // nil if there is an err
	retryAfter time.Duration
	took       time.Duration
}

// http returns the request as it was accepted.
func (r *Request) http(ctx context.Context) (*http.Request, error) {
	at, err := url.ParseRequestURI(r.URL)
	if err != nil {
		return nil, err
	}
	var body io.Reader = http.NoBody
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	made, err := http.NewRequestWithContext(ctx, r.Method, "http://deferred"+r.URL, body)
	if err != nil {
		return nil, err
	}
	made.URL = at
	made.Host, made.RemoteAddr, made.RequestURI = r.Host, r.Peer, r.URL
	made.Header = r.Header.Clone()
	if made.Header == nil {
		made.Header = make(http.Header)
	}
	return made, nil
}

// send makes one attempt. If the answer contains the true cost, it passes it to visit.
func (q *Queue) send(ctx context.Context, e *Entry, visit *tidegate.Visit) (t attempt) {
	start := time.Now()
	defer func() { t.took = time.Since(start) }()
	limited, cancel := context.WithTimeout(ctx, q.o.Timeout)
	defer cancel()
	r, err := e.Request.http(limited)
	if err == nil {
		err = q.prepare(r, e)
	}
	if err != nil {
		return attempt{err: err}
	}
	res, sent, err := q.o.Send(r)
	if err != nil {
		return attempt{sent: sent, err: inTime(limited, ctx, err, q.o.Timeout)}
	}
	defer res.Body.Close()
	discard := int64(maxDiscard)
	usage.FindInHeader(visit, res.Header)
	if finder := usage.NewFinder(visit); finder != nil {
		res.Body, discard = finder.Wrap(res), math.MaxInt64 // the cost may be at the end of a stream
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxResult+1))
	if err == nil && len(body) > maxResult {
		_, err = io.CopyN(io.Discard, res.Body, discard)
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil { // cut off: treated as no answer, whatever its status
		err = inTime(limited, ctx, fmt.Errorf("the answer with status %d is cut off: %w", res.StatusCode, err), q.o.Timeout)
		return attempt{sent: true, err: err}
	}
	t = attempt{sent: true, result: &Result{Status: res.StatusCode, Body: body[:min(len(body), maxResult)], Truncated: len(body) > maxResult}}
	if headerSize(res.Header) <= maxResultHeader {
		t.result.Header = res.Header
	}
	t.retryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
	return t
}

// retryAfter parses a Retry-After value, seconds or a date, capped at an hour; 0 if it is neither.
func retryAfter(text string, now time.Time) time.Duration {
	secs, err := strconv.Atoi(text) // of a number that is too large, it returns the largest
	if err == nil || errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(text, "-") {
		return time.Duration(min(max(secs, 0), int(maxRetryAfter.Seconds()))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}

// inTime returns a timeout error if the attempt took too long, else err.
func inTime(limited, whole context.Context, err error, timeout time.Duration) error {
	if limited.Err() != nil && whole.Err() == nil {
		return fmt.Errorf("the upstream did not answer within %s", timeout)
	}
	return err
}

// prepare sets the headers of an attempt.
func (q *Queue) prepare(r *http.Request, e *Entry) error {
	if r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", idempotencyKey(e.ID))
	}
	for name, read := range q.o.Credentials {
		value, err := read()
		if err != nil {
			return fmt.Errorf("the credentials for %s: %w", name, err)
		}
		r.Header.Set(name, value)
	}
	return nil
}
