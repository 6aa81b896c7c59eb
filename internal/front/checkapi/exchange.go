package checkapi

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
	"tidegate.dev/tidegate/internal/front/strict"
)

const (
	// maxBody is the longest body of a request to this API.
	maxBody = 1 << 20
	// smallBody is how much of a body is read without reserving room.
	smallBody = 16 << 10
	// maxBodies is the room for all longer bodies together.
	maxBodies = 64 << 20
	// maxKept bounds the memory that a pooled exchange keeps.
	maxKept = 64 << 10
	// maxKeptQuestions bounds the questions that it keeps.
	maxKeptQuestions = 16
)

// exchange is the memory of one request and its answer, pooled.
type exchange struct {
	in, out   []byte
	reserved  int64                // of room
	questions []*question.Question // those of this request
	spare     []*question.Question // all allocated ones, empty unless used
	used      int                  // how many of them are used
	many      bool
	ready     []ready // as the gate is asked
	decision  tidegate.Decision
	verdict   verdict // of the question, or the worst of several
}

// ready is a question for the gate, or why it is denied without it.
type ready struct {
	request *tidegate.Request
	denied  *strict.Problem
}

// last returns the last decision; nil if there was none.
func (x *exchange) last() *tidegate.Decision {
	if x.verdict == undecided {
		return nil
	}
	return &x.decision
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// question returns the next empty question of this request.
func (x *exchange) question() *question.Question {
	n := len(x.questions)
	if n == len(x.spare) {
		x.spare = append(x.spare, new(question.Question))
	}
	q := x.spare[n]
	if n < x.used {
		q.Reset()
	}
	x.used = max(x.used, n+1)
	x.questions = append(x.questions, q)
	return q
}

// done returns x to the pool, unless it has grown too large.
func (x *exchange) done(room *room) {
	room.give(x.reserved)
	for _, q := range x.spare[:x.used] {
		q.Reset()
	}
	if cap(x.in) > maxKept || cap(x.out) > maxKept || len(x.spare) > maxKeptQuestions {
		return
	}
	clear(x.ready)
	*x = exchange{in: x.in[:0], out: x.out[:0], questions: x.questions[:0], spare: x.spare, ready: x.ready[:0]}
	exchanges.Put(x)
}

// room limits the memory of all long bodies together to maxBodies.
type room struct{ used atomic.Int64 }

func (r *room) take(n int64) bool {
	if r.used.Add(n) > maxBodies {
		r.used.Add(-n)
		return false
	}
	return true
}

func (r *room) give(n int64) {
	if n > 0 {
		r.used.Add(-n)
	}
}

// read returns the body as text. It allocates only as much as has arrived, and reads long bodies
// only while there is room.
func (x *exchange) read(r *http.Request, room *room) (string, *problem) {
	if r.ContentLength > maxBody {
		return "", tooLong()
	}
	if cap(x.in) == 0 {
		x.in = make([]byte, 0, 1<<10)
	}
	for {
		n, err := r.Body.Read(x.in[len(x.in):cap(x.in)])
		x.in = x.in[:len(x.in)+n]
		switch {
		case len(x.in) > maxBody:
			return "", tooLong()
		case err == io.EOF:
			return string(x.in), nil
		case err != nil:
			return "", problemf(http.StatusBadRequest, "The body is broken off or wrongly encoded.")
		}
		if len(x.in) < cap(x.in) {
			continue
		}
		if p := x.grow(room); p != nil {
			return "", p
		}
	}
}

func (x *exchange) grow(room *room) *problem {
	size := min(2*cap(x.in), maxBody+1)
	if size > smallBody {
		if !room.take(int64(size)) {
			p := problemf(http.StatusServiceUnavailable, "Too many long bodies are being read; send less at a time.")
			p.RetryAfter = time.Second
			return p
		}
		room.give(x.reserved)
		x.reserved = int64(size)
	}
	x.in = append(make([]byte, 0, size), x.in...)
	return nil
}

func tooLong() *problem {
	return problemf(http.StatusRequestEntityTooLarge, "The body is longer than %d bytes.", maxBody)
}
