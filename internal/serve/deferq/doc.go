// Package deferq keeps requests that a rule has refused, and sends them later: the `defer` of
// rules. A [Queue] accepts requests, tells their callers the outcome, and sends them when the
// rule's limit has room; a [Store] keeps them. An accepted request is sent at least once, or
// becomes a dead letter with a reason.
//
// Requests of one key are a [Line]: they are sent in the order in which they were accepted, one at
// a time. The first blocks the others until it is done or dead. Lines take turns.
//
// It makes no decisions itself: it asks the same counters for room as every other request. Start
// with [New].
package deferq

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// Line identifies the requests that are sent one after the other: those of one key of one rule.
type Line struct{ Rule, Scope, Key string }

// LineOf returns the line of a check.
func LineOf(c *tidegate.Check) Line {
	scope, _, _ := strings.Cut(c.Limit.Scope, "#") // the limits of a rule share their line
	return Line{c.Limit.Terms.Rule, scope, c.Key}
}

// State is the state of an entry.
type State string

const (
	Waiting State = "waiting" // for its turn, for room, or for the next attempt
	Trying  State = "trying"  // it is being sent
	Done    State = "done"    // the upstream has answered
	Dead    State = "dead"    // it will not be sent any more; see Entry.Reason
	Queued  State = "queued"  // it was appended to the stream of the rule, for workers of the user's own
)

// Version is the version of the record of an entry, in the file and in Redis.
const Version = 1

// Entry is a request that is kept, and its outcome.
type Entry struct {
	V        int       `json:"v"`
	ID       string    `json:"id"`
	Line     Line      `json:"line"`
	Accepted time.Time `json:"accepted"`
	Expires  time.Time `json:"expires"`
	// Keep is the `keep` of its rule. Expires is Keep after Accepted; if an operator revives the
	// entry, Keep after that.
	Keep time.Duration `json:"keep"`
	// Owner has the identities of its sender, by name, hashed with the ID.
	Owner map[string]string `json:"owner"`
	// Checks are the checks of the rule that refused it.
	Checks  []Check `json:"checks"`
	Request Request `json:"request"`

	State    State     `json:"state"`
	Attempts int       `json:"attempts"`
	Next     time.Time `json:"next,omitzero"`    // not tried before
	Reason   string    `json:"reason,omitempty"` // why the last attempt failed, or why it is dead
	Ended    time.Time `json:"ended,omitzero"`   // when it became done or dead
	Result   *Result   `json:"result,omitempty"` // of an entry that is done
}

// Request is what will be sent, as it was accepted.
type Request struct {
	Method string      `json:"method"`
	URL    string      `json:"url"` // path and query
	Host   string      `json:"host"`
	Peer   string      `json:"peer"` // address that it came from
	Header http.Header `json:"header"`
	Body   []byte      `json:"-"` // kept beside the record
}

// Check is a check of the deferring rule. An attempt is charged for it if the rules in force no
// longer return a check of the entry's line, for example because a token has expired or the rule was
// removed.
type Check struct {
	Key  string        `json:"key"`
	Spec tidegate.Spec `json:"spec"`
	Cost int64         `json:"cost"`
}

// Result is the answer of the upstream.
type Result struct {
	Status    int         `json:"status"`
	Header    http.Header `json:"header,omitempty"`
	Body      []byte      `json:"body,omitempty"`
	Truncated bool        `json:"truncated,omitempty"` // the body was longer
}

// Bounds are how much a store may keep.
type Bounds struct {
	Places   int64 // requests of the rule
	PerKey   int64 // requests of a line
	KeyBytes int64 // bytes of a line
}

// Errors of stores.
var (
	ErrFull  = errors.New("there is no place left for the request")
	ErrNone  = errors.New("there is no such request")
	ErrBusy  = errors.New("the request is being sent right now")
	ErrEnded = errors.New("the request is done, or was dropped")
	// ErrUnreadable is what an error is, by [errors.Is], that says what of an entry cannot be read.
	ErrUnreadable = errors.New("its record cannot be read")
	ErrClosed     = errors.New("requests are not kept any more")
)

// NewID returns an ID that cannot be guessed.
func NewID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // it never fails
	return strings.ToLower(base32.HexEncoding.EncodeToString(b[:]))
}

// idempotencyKey returns a key that is the same for all attempts, and does not reveal the ID.
func idempotencyKey(id string) string {
	sum := sha256.Sum256([]byte("idempotency " + id))
	return "tidegate-" + hex.EncodeToString(sum[:16])
}

// overhead is about how many bytes a store needs per entry.
const overhead = 512

// size returns about how many bytes the entry takes in a store. It encodes the entry, because
// encoding makes some characters six times as long.
func (e *Entry) size() int64 {
	text, _ := encode(e) // an entry that cannot be written is not kept
	return int64(overhead + len(text) + len(e.Request.Body))
}

// ended returns the record of an entry that has ended. A done one loses its headers and body; a
// dead one is kept whole, since it may be sent again.
func (e *Entry) ended() Entry {
	record := *e
	if e.State == Done { // its credentials are not needed any more
		record.Request = Request{Method: e.Request.Method, URL: e.Request.URL, Host: e.Request.Host}
		record.Checks = nil
	}
	return record
}

// headerSize returns about how many bytes a header takes.
func headerSize(h http.Header) (n int64) {
	for name, values := range h {
		for _, v := range values {
			n += int64(len(name) + len(v) + 8)
		}
	}
	return n
}
