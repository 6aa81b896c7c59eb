package resp

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
)

// request is how the TG commands describe one.
const request = "PATH path [METHOD method] [HOST host] [IP address] [AS identity value ...] [HEADER name value ...] [BODY text] [COST cost]"

// asked is a request of a command, ready to be decided. It is used again.
type asked struct {
	question question.Question
	request  *tidegate.Request // nil if it is denied whatever the rules say
	reason   string            // why it is denied, or what is odd about it
	text     []byte            // the words of the command
	used     bool
}

// reset forgets the request.
func (a *asked) reset() {
	if cap(a.text) > smallBuffer { // strings of the question are parts of it
		*a = asked{}
		return
	}
	a.question.Reset()
	a.request, a.reason, a.used = nil, "", false
}

// readRequest reads a description up to its end, or to the word NEXT if there may be many. rest
// begins with NEXT, or is empty. wrong is the error for the client; "" if there is none.
func (c *conn) readRequest(args [][]byte, many bool) (rest [][]byte, wrong string) {
	q := &c.asked.question
	c.asked.reset()
	c.asked.used = true
	words := c.asked.copy(args, many)
	var seen once
	for len(words.args) > 0 && !(many && equalFold(words.args[0], "next")) {
		word := words.args[0]
		if equalFold(word, "report") {
			q.Report = true // however often
			words.next(1)
			continue
		}
		need := 2
		if equalFold(word, "as") || equalFold(word, "header") {
			need = 3
		}
		if len(words.args) < need {
			return nil, "ERR syntax error: " + quoted(word) + " needs a value"
		}
		first := words.next(2)
		twice := false
		switch {
		case equalFold(word, "path"):
			q.Target, twice = first, seen.again(0)
		case equalFold(word, "method"):
			q.Method, twice = first, seen.again(1)
		case equalFold(word, "host"):
			q.Host, twice = first, seen.again(2)
		case equalFold(word, "ip"):
			q.IP, twice = first, seen.again(3)
		case equalFold(word, "body"):
			q.Body, twice = first, seen.again(4)
		case equalFold(word, "as"):
			if len(q.As) == question.MaxAs {
				return nil, "ERR too many identities"
			}
			for i := range q.As {
				if q.As[i].Name == first {
					return nil, "ERR syntax error: the identity " + quoted([]byte(first)) + " is there twice"
				}
			}
			q.As = append(q.As, question.Pair{Name: first, Value: words.next(1)})
		case equalFold(word, "header"):
			if len(q.Headers) == question.MaxHeaders {
				return nil, "ERR too many headers"
			}
			q.Headers = append(q.Headers, question.Pair{Name: first, Value: words.next(1)})
		case equalFold(word, "cost"):
			n, ok := integer([]byte(first))
			if !ok || n < 1 {
				return nil, "ERR COST is not a positive integer"
			}
			q.Cost, twice = n, seen.again(5)
		default:
			return nil, "ERR syntax error: " + quoted(word) + " is not one of PATH, METHOD, HOST, IP, AS, HEADER, BODY, COST, REPORT"
		}
		if twice {
			return nil, "ERR syntax error: " + quoted(word) + " is there twice"
		}
	}
	return words.args, c.asked.make(c.srv)
}

// once notes which words were there. None may be there twice: readers differ in which of two they
// take.
type once uint8

// again reports whether a word was there before.
func (o *once) again(bit uint) bool {
	was := *o&(1<<bit) != 0
	*o |= 1 << bit
	return was
}

// make makes a request of the question. wrong is the error for the client; "" if there is none.
func (a *asked) make(s *Server) (wrong string) {
	q := &a.question
	if q.Target == "" || q.Target[0] != '/' {
		return "ERR PATH is missing or does not start with a slash"
	}
	r, denied, err := q.Request(s.o.Paths)
	switch {
	case err != nil:
		return "ERR " + err.Error()
	case denied != nil:
		a.reason = denied.Detail
		return ""
	}
	a.request = r
	if s.o.Known != nil {
		for i := range q.As {
			if name := q.As[i].Name; !s.o.Known(name) {
				a.reason = "The rules have no identity " + quoted([]byte(name)) + "."
			}
		}
	}
	return ""
}

// wordList are the words of a command, in memory that outlives the reading of the next one.
type wordList struct {
	args [][]byte
	text string // those of the request, one after the other
}

// ownWords returns how many of the words are of the first request.
func ownWords(args [][]byte, many bool) int {
	n := 0
	for n < len(args) && !(many && equalFold(args[n], "next")) {
		switch w := args[n]; {
		case equalFold(w, "report"):
			n++
		case equalFold(w, "as"), equalFold(w, "header"):
			n += 3
		default:
			n += 2
		}
	}
	return min(n, len(args))
}

// copy returns the words of args, of which those of the first request are copied.
func (a *asked) copy(args [][]byte, many bool) wordList {
	a.text = a.text[:0]
	for _, w := range args[:ownWords(args, many)] {
		a.text = append(a.text, w...)
	}
	return wordList{args, string(a.text)}
}

// next returns word n, counted from 1, and goes on behind it.
func (w *wordList) next(n int) (word string) {
	for range n {
		size := len(w.args[0])
		word, w.text, w.args = w.text[:size], w.text[size:], w.args[1:]
	}
	return word
}

// quoted returns a word of the client as an error may show it.
func quoted(b []byte) string { return "'" + string(b[:min(len(b), 64)]) + "'" }
