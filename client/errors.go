package client

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrThrottled is the reason for requests that are not sent because the server refuses
	// most of them, or cannot be reached; see [Transport.Throttle].
	ErrThrottled = errors.New("the server refuses most requests")
	// ErrStopped is the reason for requests that are not sent because the server has
	// refused others until a time that is later than they may wait.
	ErrStopped = errors.New("the server has asked to come back later")
	// ErrLimit is the reason for requests that are not sent because a limit of a [Provider]
	// has no room for them, and would have none within the wait. Errors that wrap it say if the
	// store failed, or if the cost can never fit.
	ErrLimit = errors.New("a limit is used up")
)

// RefusedError is returned for a request that was not sent. It is never retried.
type RefusedError struct {
	// Reason is one of ErrThrottled, ErrStopped and ErrLimit, or wraps one of them.
	Reason error
	// Key is what the refusal is about: the host, or what the Key function returned, or
	// the name of the Provider, with a space and what its Key function returned if it has one.
	Key string
	// RetryAfter is when the request may pass; 0 means that this is not known, or never.
	RetryAfter time.Duration
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("client: not sent to %s: %v", e.Key, e.Reason)
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; try again in %s", e.RetryAfter.Round(time.Millisecond))
	}
	return text
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Reason }
