package rediswire

import (
	"bytes"
	"net"
	"strconv"
	"strings"
)

// item is a value of a valid message.
type item struct {
	typ  byte
	text string // of any value but an array
	all  []item // of an array: its elements
}

// parse reads the first value of m, which is known to be whole.
func parse(m []byte) (it item, rest []byte) {
	line, rest, _ := bytes.Cut(m, []byte("\r\n"))
	if len(line) == 0 {
		return item{typ: '_'}, nil
	}
	it = item{typ: line[0], text: string(line[1:])}
	n, _ := strconv.Atoi(it.text)
	switch it.typ {
	case '$', '!', '=':
		if n < 0 || n+2 > len(rest) {
			return item{typ: '_'}, rest
		}
		it.text, rest = string(rest[:n]), rest[n+2:]
	case '*', '~', '>', '%':
		if it.typ == '%' {
			n *= 2
		}
		for range n {
			var one item
			one, rest = parse(rest)
			it.all = append(it.all, one)
		}
		it.text = ""
	}
	return it, rest
}

func (it *item) word() bool { return it.typ == '$' || it.typ == '+' }

func words(all []item) bool {
	for i := range all {
		if !all[i].word() {
			return false
		}
	}
	return true
}

// shaped reports whether the reply m has a shape that clients can handle.
func (w *want) shaped(m []byte) bool {
	switch w.kind {
	case role:
		it, _ := parse(m)
		return len(it.all) > 0 && it.all[0].word()
	case address:
		it, _ := parse(m)
		return null(m, "_") || it.typ == '_' || len(it.all) == 2 && words(it.all)
	case pong, unsubscribe:
		return unsubscribed(m)
	}
	return true
}

// acceptError reports what is wrong with the error m. Clients parse those that redirect them
// to another server.
func (w *want) acceptError(m []byte) error {
	it, _ := parse(m)
	fields := strings.Split(it.text, " ")
	switch {
	case strings.HasPrefix(it.text, "MOVED"), strings.HasPrefix(it.text, "ASK"):
		if len(fields) < 3 || !isAddress(fields[2]) {
			return violation("a redirection to nowhere", m)
		}
	case strings.HasPrefix(it.text, "REDIRECT"):
		if len(fields) < 2 || !isAddress(fields[1]) {
			return violation("a redirection to nowhere", m)
		}
	}
	switch {
	case w.kind == subscribe && (w.left != w.all || it.text == "QUEUED"):
		return violation("an error after a subscription began", m)
	case w.kind == unsubscribe && unsubscribed(m):
		return violation("an error that passes for the end of a subscription", m)
	case w.rest && !unsubscribed(m):
		return violation("a reply that does not end a subscription", m)
	}
	return nil
}

func isAddress(text string) bool {
	i := strings.LastIndexByte(text, ':') // IPv6 comes without brackets
	if i < 0 {
		return false
	}
	port, err := strconv.ParseUint(text[i+1:], 10, 16)
	return err == nil && port > 0
}

// unsubscribed reports whether a client takes m for the reply to the PING that it sends
// behind an UNSUBSCRIBE.
func unsubscribed(m []byte) bool {
	it, _ := parse(m)
	if it.typ == '-' {
		return strings.HasPrefix(it.text, "LOADING") || strings.HasPrefix(it.text, "BUSY") || strings.Contains(it.text, "'ping'")
	}
	return it.text == "PONG" || len(it.all) > 0 && it.all[0].text == "pong"
}

// answeredLocked takes w, whose reply was just accepted, off the list. With an unsubscribe goes the PING
// behind it, unless the unsubscribe failed.
func (c *Conn) answeredLocked(w *want) error {
	ended := w.kind == unsubscribe
	failed := ended && c.in.kept[0] == '-'
	c.wanted.pop()
	if !ended {
		return nil
	}
	ping := c.wanted.first()
	if ping == nil || ping.kind != pong {
		return violation("an end of subscriptions without a sign of life", c.in.kept)
	}
	if failed {
		ping.rest = true // it has a reply of its own
	} else {
		c.wanted.pop()
	}
	return nil
}

// pushedLocked reports what is wrong with a message that was pushed, and counts those that answer a
// subscription.
func (c *Conn) pushedLocked() error {
	it, _ := parse(c.in.kept)
	if len(it.all) == 0 || !it.all[0].word() {
		return violation("a push without a name", c.in.kept)
	}
	name, rest := it.all[0].text, it.all[1:]
	switch name {
	case "pong":
		return c.pongLocked(it)
	case "subscribe", "psubscribe", "ssubscribe":
		next := c.wanted.first()
		if next == nil || next.kind != subscribe || len(rest) != 2 || !rest[0].word() || rest[1].typ != ':' {
			return violation("an unsolicited subscription", c.in.kept)
		}
		if next.left--; next.left == 0 {
			c.wanted.pop()
		}
		return nil
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		if !c.pubsub || len(rest) != 2 || rest[1].typ != ':' {
			return violation("an unsolicited end of subscriptions", c.in.kept)
		}
		return nil
	case "message", "smessage":
		if !c.pubsub || len(rest) != 2 || !words(rest) || !announces(rest[0].text, rest[1].text) {
			return violation("a message that makes no sense", c.in.kept)
		}
		return nil
	case "pmessage":
		if !c.pubsub || len(rest) != 3 || !words(rest) {
			return violation("a message that makes no sense", c.in.kept)
		}
		return nil
	}
	if it.typ == '*' {
		return violation("an unsolicited reply", c.in.kept)
	}
	return nil // news of a kind that clients pass over
}

// pongLocked takes the reply to a PING beside subscriptions, in the old protocol.
func (c *Conn) pongLocked(it item) error {
	next := c.wanted.first()
	if it.typ == '>' || next == nil || next.kind != pong && next.kind != unsubscribe {
		return violation("an unsolicited PONG", c.in.kept)
	}
	return c.answeredLocked(next)
}

// announces reports whether a message of Sentinel has the fields that clients read of it.
func announces(channel, text string) bool {
	fields := strings.Split(text, " ")
	switch channel {
	case "+sentinel":
		return len(fields) >= 4
	case "+switch-master":
		return len(fields) == 5 && isAddress(net.JoinHostPort(fields[3], fields[4]))
	case "+reboot":
		return len(fields) >= 4 && (fields[0] != "slave" || len(fields) >= 6)
	case "+slave", "+sdown", "-sdown":
		return len(fields) >= 2 && (fields[0] != "slave" || len(fields) >= 6)
	}
	return true
}
