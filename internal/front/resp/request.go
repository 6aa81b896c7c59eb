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
	reason   string            // why it is, or what is odd about it
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

// readRequest reads a description up to its end, or to the word NEXT if there may be many, and
// returns what is behind that, or what a client is told is wrong.
func (c *conn) readRequest(args [][]byte, many bool) (rest [][]byte, wrong string) {
	q := &c.asked.question
	c.asked.reset()
	c.asked.used = true
	words := c.asked.copy(args)
	for len(words.args) > 0 && !(many && equalFold(words.args[0], "next")) {
		word := words.args[0]
		if equalFold(word, "report") {
			q.Report = true
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
		switch {
		case equalFold(word, "path"):
			q.Target = first
		case equalFold(word, "method"):
			q.Method = first
		case equalFold(word, "host"):
			q.Host = first
		case equalFold(word, "ip"):
			q.IP = first
		case equalFold(word, "body"):
			q.Body = first
		case equalFold(word, "as"):
			if len(q.As) == question.MaxAs {
				return nil, "ERR too many identities"
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
			q.Cost = n
		default:
			return nil, "ERR syntax error: " + quoted(word) + " is not one of PATH, METHOD, HOST, IP, AS, HEADER, BODY, COST, REPORT"
		}
	}
	return words.args, c.asked.make(c.srv)
}

// make makes a request of the question.
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
	text string // all of them, one after the other
}

func (a *asked) copy(args [][]byte) wordList {
	a.text = a.text[:0]
	for _, w := range args {
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

// quoted is a word of the client as an error may show it.
func quoted(b []byte) string { return "'" + string(b[:min(len(b), 64)]) + "'" }
