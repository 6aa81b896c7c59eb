package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tidegate.dev/tidegate/internal/lang/sleep"
)

const (
	// MaxPause is the longest pause between two requests that Cache-Control can ask for.
	MaxPause = time.Minute
	// MaxRetryAfter is the longest wait that Retry-After can ask for.
	MaxRetryAfter = 5 * time.Minute
)

// Seconds returns a wait for Prefer: whole seconds, at least one.
func Seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}

// RetryAfter returns how long a busy server asks not to be asked; 0 if it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), MaxRetryAfter))
}

// MaxAge returns how long an answer is fresh according to its headers, up to MaxPause; 0 if they do
// not say.
func MaxAge(h http.Header) time.Duration {
	var age time.Duration
	for _, line := range h.Values("Cache-Control") {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch strings.ToLower(name) {
			case "no-cache", "no-store":
				return 0
			case "max-age":
				if n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
					age = min(time.Duration(n)*time.Second, MaxPause)
				}
			}
		}
	}
	return age
}

// BusyError is the answer of a server that asks to be left alone for a while.
type BusyError struct {
	error
	After time.Duration
}

// Refused returns the error for an unexpected answer.
func Refused(a *Answer) error {
	err := errors.New("the server answered " + Status(a.Status))
	switch a.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: name a file with a token that may read the rules in rules_source.token_file", err)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if after := RetryAfter(a.Header, time.Now()); after > 0 {
			return &BusyError{err, after}
		}
	}
	return err
}

// Status returns the text of a status code.
func Status(code int) string {
	return strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code))
}

// Rest is until when a busy server must not be asked. The zero value means that it may be asked.
type Rest struct{ until time.Time }

// Wait waits until a busy server may be asked again. If that takes longer than most, it returns an
// error after most, so that the server does not seem to be fine.
func (r *Rest) Wait(ctx context.Context, most time.Duration) error {
	if err := sleep.For(ctx, min(time.Until(r.until), most)); err != nil {
		return err
	}
	if left := time.Until(r.until); left > 0 {
		return fmt.Errorf("the server is busy, and is asked again in %s", left.Round(time.Second))
	}
	return nil
}

// Note records the wait if err is a BusyError.
func (r *Rest) Note(err error) {
	var busy *BusyError
	if errors.As(err, &busy) {
		r.until = time.Now().Add(busy.After)
	}
}
