package client

import (
	"fmt"
	"time"
)

// EventKind is what happened to a request.
type EventKind uint8

const (
	// Paced: the request waits because little of a limit remains. Of a Provider: it has
	// waited for its turn.
	Paced EventKind = iota
	// Held: the request waits because the server has refused others until a time.
	Held
	// Retried: the server refused the request or could not be reached; it is sent again
	// after Event.Wait.
	Retried
	// Final: the server refused the request or could not be reached, and it is not sent again.
	Final
	// Rejected: the request was not sent; Event.Err is a *RefusedError.
	Rejected
	// Stopped: a Provider has told all instances to wait for Event.Wait, or Event.Err says
	// why it could not.
	Stopped
)

var eventNames = [...]string{"paced", "held", "retried", "final", "rejected", "stopped"}

// String gives a word for logs and metrics, for example "retried".
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is what a hook is told about a request.
type Event struct {
	Kind EventKind
	// Key is the host, or what the Key function returned, or the name of the Provider.
	Key string
	// Try counts from 1; 0 means that the request was not sent yet.
	Try int
	// Status of the answer; 0 means that there was none.
	Status int
	// Err is the error of the transport, or of the store of a Provider.
	Err error
	// Wait is how long the request waits now, or has waited for its turn.
	Wait time.Duration
}
