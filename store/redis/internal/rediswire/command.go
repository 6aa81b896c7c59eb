package rediswire

import (
	"bytes"
	"errors"
	"strconv"
)

// writer reads along with what a client sends, and finds its commands: arrays of blobs.
type writer struct {
	state byte   // what comes next: '*', '$', or 'b' for the bytes of a blob and their end
	line  []byte // of a length, so far
	args  int    // that are still to come
	left  int    // bytes of this blob, with the CRLF behind it
	cmd   command
}

// command is what is known of one command: enough to know what its reply has to be.
type command struct {
	args int       // how many it has, its name included
	word [3][]byte // the first three arguments, up to maxWord bytes of each
	tag  []byte    // the first bytes of the first argument of a script
	keys int       // of a script
	at   int       // the argument that is being read
}

const maxWord = 32

var errCommand = errors.New("rediswire: a client that does not send arrays of blobs")

// scan reads b, and calls sent for each command that ends in it.
func (w *writer) scan(b []byte, sent func(*command)) error {
	for len(b) > 0 {
		if w.state == 'b' {
			n := min(w.left, len(b))
			w.cmd.read(b[:min(n, max(w.left-2, 0))])
			b, w.left = b[n:], w.left-n
			if w.left == 0 {
				w.next(sent)
			}
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			w.line = append(w.line, b...)
			return w.sane()
		}
		w.line = append(w.line, b[:end+1]...)
		b = b[end+1:]
		if err := w.length(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) sane() error {
	if len(w.line) > maxWord {
		return errCommand
	}
	return nil
}

// length reads the line that announces how many arguments follow, or how long one is.
func (w *writer) length() error {
	first := byte('*')
	if w.state == '$' {
		first = '$'
	}
	text, ok := bytes.CutSuffix(w.line, []byte("\r\n"))
	if !ok || len(text) < 2 || text[0] != first {
		return errCommand
	}
	n, err := strconv.Atoi(string(text[1:]))
	if err != nil || n < 0 || first == '*' && n == 0 {
		return errCommand
	}
	w.line = w.line[:0]
	if first == '*' {
		w.cmd.reset(n)
		w.args, w.state = n, '$'
	} else {
		w.left, w.state = n+2, 'b'
	}
	return nil
}

// next goes on to the next argument, or calls sent if that was the last one.
func (w *writer) next(sent func(*command)) {
	w.cmd.next()
	w.state = '$'
	if w.args--; w.args == 0 {
		w.state = '*'
		sent(&w.cmd)
	}
}

func (c *command) reset(args int) {
	for i := range c.word {
		c.word[i] = c.word[i][:0]
	}
	c.tag = c.tag[:0]
	c.args, c.at, c.keys = args, 0, -1
}

// read keeps what is needed of a piece of an argument.
func (c *command) read(b []byte) {
	switch {
	case c.at < len(c.word):
		c.word[c.at] = append(c.word[c.at], b[:min(len(b), maxWord-len(c.word[c.at]))]...)
	case c.at == c.keys+len(c.word) && c.keys >= 0:
		c.tag = append(c.tag, b[:min(len(b), TagSize-len(c.tag))]...)
	}
}

func (c *command) next() {
	if c.at++; c.at == len(c.word) && c.script() {
		if n, err := strconv.Atoi(string(c.word[2])); err == nil && n >= 0 {
			c.keys = n
		}
	}
}

func (c *command) script() bool {
	switch string(c.word[0]) {
	case "EVALSHA", "EVAL":
		return true
	}
	return false
}

func (c *command) proto3() bool { return string(c.word[1]) == "3" }
