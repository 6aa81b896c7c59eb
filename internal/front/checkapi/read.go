package checkapi

import (
	"math"
	"strconv"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/question"
)

// fields records which fields of an object were present, one bit each.
type fields uint32

// once rejects a field that occurs twice, since parsers differ in which of the two they use.
func (f *fields) once(s *scanner, name string, bit uint) {
	if *f&(1<<bit) != 0 {
		s.fail("the field %q is there twice", name)
	}
	*f |= 1 << bit
}

// readQuestion reads an object that describes a request.
func readQuestion(s *scanner, q *question.Question) {
	if !s.open('{', "an object that describes a request") {
		return
	}
	var seen fields
	for n := 0; s.next('}', &n); {
		readField(s, s.name(), q, &seen)
	}
}

// readField reads one field of a question.
func readField(s *scanner, name string, q *question.Question, seen *fields) {
	switch name {
	case "method":
		seen.once(s, name, 0)
		q.Method = s.str("method")
	case "host":
		seen.once(s, name, 1)
		q.Host = s.str("host")
	case "path":
		seen.once(s, name, 2)
		q.Target = s.str("path")
	case "ip":
		seen.once(s, name, 3)
		q.IP = s.str("ip")
	case "headers":
		seen.once(s, name, 4)
		readHeaders(s, q)
	case "body":
		seen.once(s, name, 5)
		readBody(s, q)
	case "cost":
		seen.once(s, name, 6)
		q.Cost = s.integer("cost", 1, math.MaxInt64)
	case "as":
		seen.once(s, name, 7)
		readAs(s, q)
	case "report":
		seen.once(s, name, 8)
		q.Report = s.boolean("report")
	default:
		if s.err == nil {
			s.fail("there is no field %q; there are method, host, path, ip, headers, body, cost, as and report", name)
		}
	}
}

// readHeaders reads an object of headers, each with a string or an array of strings.
func readHeaders(s *scanner, q *question.Question) {
	if !s.open('{', "an object of headers") {
		return
	}
	for n := 0; s.next('}', &n); {
		name := s.name()
		if s.peek() != '[' {
			addHeader(s, q, name)
			continue
		}
		s.at++
		for n := 0; s.next(']', &n); {
			addHeader(s, q, name)
		}
	}
}

func addHeader(s *scanner, q *question.Question, name string) {
	if len(q.Headers) == question.MaxHeaders {
		s.fail("headers has more than %d values", question.MaxHeaders)
		return
	}
	q.Headers = append(q.Headers, question.Pair{Name: name, Value: s.str("the value of a header")})
}

// readBody reads the body: a string is taken as text, anything else as JSON.
func readBody(s *scanner, q *question.Question) {
	if s.peek() == '"' {
		q.Body = s.str("body")
	} else {
		q.Body = s.value("body")
	}
	if len(q.Body) > question.MaxBody {
		s.fail("body is longer than %d bytes", question.MaxBody)
	}
}

func readAs(s *scanner, q *question.Question) {
	if !s.open('{', "an object of identities") {
		return
	}
	for n := 0; s.next('}', &n); {
		name := s.name()
		for i := range q.As {
			if q.As[i].Name == name {
				s.fail("the identity %q is there twice", name)
				return
			}
		}
		if len(q.As) == question.MaxAs {
			s.fail("as has more than %d identities", question.MaxAs)
			return
		}
		q.As = append(q.As, question.Pair{Name: name, Value: s.scalar("the value of an identity")})
	}
}

// checksBit is the bit of the field checks.
const checksBit = 31

// readChecks reads the body of POST /v1/check and /v1/peek: one question, or an object with just
// the field checks, an array of questions.
func (x *exchange) readChecks(text string, most int) error {
	s := scanner{text: text}
	if !s.open('{', "an object that describes a request") {
		return s.err
	}
	var seen fields
	q := x.question()
	for n := 0; s.next('}', &n); {
		name := s.name()
		if name != "checks" || s.err != nil {
			readField(&s, name, q, &seen)
			continue
		}
		seen.once(&s, name, checksBit)
		x.many, x.questions = true, x.questions[:0]
		x.readMany(&s, most)
	}
	if x.many && seen != 1<<checksBit {
		s.fail("the field \"checks\" stands alone: describe each request within it")
	}
	return s.end()
}

func (x *exchange) readMany(s *scanner, most int) {
	if !s.open('[', "an array of requests") {
		return
	}
	for n := 0; s.next(']', &n); {
		if n > most {
			s.fail("there are more than %d checks", most)
			return
		}
		readQuestion(s, x.question())
		if s.err != nil {
			s.err = inCheck(n-1, s.err)
		}
	}
	if len(x.questions) == 0 {
		s.fail("the array of checks is empty")
	}
}

// report is a ticket, and the outcome that is reported for it.
type report struct {
	ticket  string
	outcome tidegate.Outcome
}

// readReport reads a ticket, and the fields status and cost if they are allowed.
func readReport(text string, status, cost bool) (r report, err error) {
	s := scanner{text: text}
	if !s.open('{', "an object with a ticket") {
		return r, s.err
	}
	var seen fields
	for n := 0; s.next('}', &n); {
		switch name := s.name(); {
		case name == "ticket":
			seen.once(&s, name, 0)
			r.ticket = s.str("ticket")
		case name == "status" && status:
			seen.once(&s, name, 1)
			r.outcome.Status = int(s.integer("status", 100, 599))
		case name == "cost" && cost:
			seen.once(&s, name, 2)
			r.outcome.Cost, r.outcome.CostKnown = s.integer("cost", 0, math.MaxInt64), true
		case s.err == nil:
			s.fail("there is no field %q here", name)
		}
	}
	if err := s.end(); err != nil {
		return r, err
	}
	if r.ticket == "" {
		s.fail("there is no ticket")
	}
	return r, s.err
}

func inCheck(i int, err error) error { return &checkError{i, err} }

// checkError says which of several checks is invalid.
type checkError struct {
	index int
	err   error
}

// Error implements error.
func (e *checkError) Error() string { return "checks[" + strconv.Itoa(e.index) + "]: " + e.err.Error() }
