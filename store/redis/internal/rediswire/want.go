package rediswire

import (
	"bytes"
	"strings"
)

// TagSize is how many bytes a script's reply repeats: its first argument begins with
// them, and so must the reply. They tell a reply from that to another call.
const TagSize = 8

// kind is what is known of a reply by its command.
type kind uint8

const (
	anything kind = iota
	hello
	status      // a word: the server lets the client in
	word        // a word
	pong        // a word, or an array beside subscriptions
	count       // an integer
	blob        // or null
	script      // a blob that begins with the tag
	role        // an array that begins with a word
	address     // host and port, or null
	sentinels   // an array of maps
	topology    // an array
	page        // a cursor, and keys
	subscribe   // as many pushes as channels
	unsubscribe // pushes, or nothing; a PING follows
)

// want is what is known of the reply that a command is to have.
type want struct {
	kind kind
	left int // of subscribe: pushes that are still to come
	all  int // of subscribe: pushes in all
	tag  [TagSize]byte
	// rest: the unsubscribe before this ping failed, so the ping has a reply of its own.
	// The client knows that, and skips it if it is a reply to a ping.
	rest bool
}

// want returns what is to come back for c.
func (c *command) want() want {
	if c.script() { // nearly always
		w := want{kind: script}
		copy(w.tag[:], c.tag)
		return w
	}
	name := strings.ToUpper(string(c.word[0]))
	w := want{kind: kinds[name]}
	switch name {
	case "SENTINEL":
		w.kind = anything
		switch strings.ToUpper(string(c.word[1])) {
		case "GET-MASTER-ADDR-BY-NAME":
			w.kind = address
		case "SENTINELS", "REPLICAS", "SLAVES":
			w.kind = sentinels
		}
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		w.left, w.all = c.args-1, c.args-1
	}
	return w
}

var kinds = map[string]kind{
	"HELLO": hello, "AUTH": status, "SELECT": status, "CLIENT": word, "READONLY": word, "ASKING": word,
	"PING": pong, "EXISTS": count, "ZREM": count, "DEL": count, "EXPIRE": count, "GET": blob, "ROLE": role,
	"CLUSTER": topology, "SCAN": page,
	"SUBSCRIBE": subscribe, "PSUBSCRIBE": subscribe, "SSUBSCRIBE": subscribe,
	"UNSUBSCRIBE": unsubscribe, "PUNSUBSCRIBE": unsubscribe, "SUNSUBSCRIBE": unsubscribe,
}

// types are the first bytes that a reply may have, besides those of an error.
var types = [...]string{
	anything: "+:$*%~_,#=(", hello: "%*", status: "+", word: "+", pong: "+*", count: ":", blob: "$_", script: "$",
	role: "*", address: "*_", sentinels: "*", topology: "*", page: "*", subscribe: "", unsubscribe: "+*",
}

// limits of a message.
type limits struct {
	elements int // how many elements its arrays may announce, in all
	bytes    int
	inspect  int // how many of its first bytes are kept, to be looked at when it is whole
}

const (
	maxDepth    = 8
	maxLine     = 64 << 10
	maxBlob     = 1 << 20
	maxPush     = 64 << 10
	maxReply    = 8 << 20
	maxTopology = 32 << 20
)

func (w *want) limits(typ byte) limits {
	switch {
	case typ == '-' || typ == '!':
		return limits{bytes: maxLine, inspect: maxLine}
	case w.kind == script:
		return limits{bytes: maxBlob, inspect: maxWord + TagSize}
	case w.kind == topology:
		return limits{elements: 1 << 19, bytes: maxTopology, inspect: maxWord}
	case w.kind == page:
		return limits{elements: 1 << 16, bytes: maxReply, inspect: maxWord}
	}
	return limits{elements: 1 << 12, bytes: maxBlob, inspect: maxBlob}
}

// accept reports what is wrong with the reply m, the first bytes of which are kept.
func (w *want) accept(m []byte) error {
	switch typ := m[0]; {
	case typ == '-' || typ == '!':
		return w.acceptError(m)
	case strings.IndexByte(types[w.kind], typ) < 0 && !null(m, types[w.kind]):
		return violation("a reply of another kind than the command has", m)
	case w.kind == script:
		return w.acceptScript(m)
	case w.rest && !unsubscribed(m):
		return violation("a reply that does not end a subscription", m)
	}
	if !w.shaped(m) {
		return violation("a reply of another shape than the command has", m)
	}
	return nil
}

// null reports whether m is the old protocol's null, and types allow _, which is that of the new one.
func null(m []byte, types string) bool {
	return strings.IndexByte(types, '_') >= 0 && (string(m) == "$-1\r\n" || string(m) == "*-1\r\n")
}

func (w *want) acceptScript(m []byte) error {
	if _, text, _ := bytes.Cut(m, []byte("\n")); !bytes.HasPrefix(text, w.tag[:]) {
		return violation("the reply to another call", m)
	}
	return nil
}

// queue has what is known of the replies to come, in their order.
type queue struct {
	all  []want
	from int
}

func (q *queue) first() *want {
	if q.from == len(q.all) {
		return nil
	}
	return &q.all[q.from]
}

func (q *queue) push(w want) {
	if q.from > 64 && q.from*2 > len(q.all) { // what was answered makes room
		n := copy(q.all, q.all[q.from:])
		q.all, q.from = q.all[:n], 0
	}
	q.all = append(q.all, w)
}

func (q *queue) pop() {
	if q.from++; q.from == len(q.all) {
		q.all, q.from = q.all[:0], 0
	}
}
