package rediswire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Violation is the error of a connection whose server sent what cannot be right.
type Violation struct {
	What string // what the server sent, in words
	Got  string // the first bytes of that
	Hint string // what may be the reason, if that can be told
}

// Error says what was wrong and what came.
func (v *Violation) Error() string {
	text := v.What
	if v.Got != "" {
		text = fmt.Sprintf("%s: %q", v.What, v.Got)
	}
	if v.Hint != "" {
		text += " (" + v.Hint + ")"
	}
	return "the connection was closed, since the server sent " + text
}

// ErrHungUp is reported when a server closes a connection without a word.
var ErrHungUp = errors.New("the server closed the connection without a word: it may want TLS, or have too many connections")

// Unwelcome is the error of a connection that has ended without an answer to the client's first command,
// which introduces it: no call was sent.
type Unwelcome struct{ error }

func (u Unwelcome) Unwrap() error { return u.error }

// ServerError is an error in the words of the server, for example in place of a welcome to a
// client that introduces itself.
type ServerError string

// Error returns the server's own words.
func (e ServerError) Error() string { return string(e) }

// maxGot is how many bytes of what came an error has.
const maxGot = 80

func violation(what string, got []byte) *Violation {
	return &Violation{What: what, Got: string(got[:min(len(got), maxGot)])}
}

// surplus returns the error of a message that nobody asked for. By such a message a server
// says that it refuses the connection.
func (c *Conn) surplus(b []byte) error {
	v := violation("an unsolicited reply", firstLine(b))
	if bytes.HasPrefix(b, []byte("-")) {
		v.Hint = "that is why it does not want this connection"
	}
	if !c.in.seen {
		return c.diagnose(v, b)
	}
	return v
}

// diagnose adds to the error of a connection's first message what the server may be.
func (c *Conn) diagnose(err error, b []byte) error {
	v, ok := err.(*Violation)
	if !ok || c.in.seen {
		return err
	}
	switch {
	case len(b) >= 2 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3:
		v.Hint = "it speaks TLS: use rediss://"
	case bytes.HasPrefix(b, []byte("HTTP/")):
		v.Hint = "it speaks HTTP: this is not the port of Redis"
	case strings.IndexByte("+-:$*_%~,#!=(>", b[0]) < 0:
		v.Hint = "it is not Redis: check host and port"
	default:
		return v
	}
	v.What, v.Got = "what is not Redis' protocol", string(firstLine(b))
	return v
}

func firstLine(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = bytes.TrimSuffix(b[:i], []byte("\r"))
	}
	return b[:min(len(b), maxGot)]
}
