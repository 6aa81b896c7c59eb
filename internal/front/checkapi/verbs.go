package checkapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/front/question"
)

// verb answers the JSON in text by appending to x.out, or returns why it does not.
type verb func(s *Server, ctx context.Context, x *exchange, text string) *problem

var verbs = map[string]verb{
	"check":   decide{ask: (*desk.Desk).Open, askPending: (*desk.Desk).OpenPending, many: true}.verb,
	"peek":    decide{ask: peek, many: true}.verb,
	"reserve": decide{ask: (*desk.Desk).Reserve}.verb,
	"acquire": decide{ask: (*desk.Desk).Open, askPending: (*desk.Desk).OpenPending, idle: "No rule with concurrency applies, so there is no slot to hold."}.verb,
	"usage":   (*Server).usage,
	"settle":  ticketVerb((*desk.Desk).Settle, "cost"),
	"report":  ticketVerb((*desk.Desk).Settle, "status or cost"),
	"renew":   ticketVerb(renew, ""),
	"release": ticketVerb(release, ""),
}

func peek(d *desk.Desk, ctx context.Context, r *tidegate.Request) desk.Answer {
	return desk.Answer{Decision: d.Peek(ctx, r)}
}

func renew(d *desk.Desk, ctx context.Context, ticket string, _ tidegate.Outcome) error {
	return d.Renew(ctx, ticket)
}

func release(d *desk.Desk, ctx context.Context, ticket string, _ tidegate.Outcome) error {
	return d.Release(ctx, ticket)
}

// decide is a verb about requests.
type decide struct {
	ask func(*desk.Desk, context.Context, *tidegate.Request) desk.Answer
	// askPending is for callers that will report the outcome; nil means that there is no outcome to
	// report.
	askPending func(*desk.Desk, context.Context, *tidegate.Request) desk.Answer
	many       bool   // several at a time
	idle       string // the reason in the answer to a request that is allowed without a ticket
}

// verb implements a verb.
func (d decide) verb(s *Server, ctx context.Context, x *exchange, text string) *problem {
	if err := x.readChecks(text, s.Checks); err != nil {
		return badInput(err)
	}
	if x.many && !d.many {
		return badInput(errors.New("this takes one request at a time"))
	}
	// Read all of them before any is charged.
	if err := x.prepare(s, d.askPending != nil); err != nil {
		return badInput(err)
	}
	if x.many {
		x.out = append(x.out, `{"answers":[`...)
	}
	deadlines := deadlines{server: s, ctx: ctx}
	defer deadlines.stop()
	for i, q := range x.questions {
		if i > 0 {
			x.out = append(x.out, ',')
		}
		var a desk.Answer
		reason := ""
		switch p := x.ready[i].denied; {
		case p != nil:
			a.Never, reason = true, p.Detail
			if s.Refused != nil {
				s.Refused(q.Refused(reason))
			}
		case q.Report:
			a = d.askPending(s.Desk, deadlines.next(), x.ready[i].request)
		default:
			a = d.ask(s.Desk, deadlines.next(), x.ready[i].request)
		}
		if a.OK && a.Ticket == "" && a.Err == nil {
			reason = d.idle
		}
		x.write(&a, reason, q, s.Known)
	}
	if x.many {
		x.out = append(x.out, `]}`...)
	}
	return nil
}

// prepare makes the requests of the questions. outcome says whether questions may promise to report
// the outcome.
func (x *exchange) prepare(s *Server, outcome bool) error {
	for i, q := range x.questions {
		r, denied, err := q.Request(s.paths)
		if err == nil && q.Report && !outcome {
			err = errReport
		}
		if err != nil && x.many {
			err = inCheck(i, err)
		}
		if err != nil {
			return err
		}
		x.ready = append(x.ready, ready{r, denied})
	}
	return nil
}

// errReport is for verbs without an outcome, or whose outcome is always reported.
var errReport = errors.New("the field \"report\" is for check and acquire")

// write appends the answer to question q.
func (x *exchange) write(a *desk.Answer, reason string, q *question.Question, known func(string) bool) {
	result := verdictOf(&a.Decision)
	x.decision = a.Decision
	x.verdict = max(x.verdict, result)
	x.out = appendAnswer(x.out, a, result, reason)
	first := true
	for i := range q.As {
		if name := q.As[i].Name; known != nil && !known(name) {
			if first {
				x.out = append(x.out, `,"unknown":[`...)
			} else {
				x.out = append(x.out, ',')
			}
			x.out = appendString(x.out, name)
			first = false
		}
	}
	if !first {
		x.out = append(x.out, ']')
	}
	x.out = append(x.out, '}')
}

// ticketVerb returns a verb that reports something about a ticket. needs are the fields of which at
// least one is required.
func ticketVerb(report func(*desk.Desk, context.Context, string, tidegate.Outcome) error, needs string) verb {
	return func(s *Server, ctx context.Context, x *exchange, text string) *problem {
		r, err := readReport(text, needs == "status or cost", needs != "")
		if err == nil && needs != "" && r.outcome == (tidegate.Outcome{}) {
			err = errors.New("there is no " + needs)
		}
		if err != nil {
			return badInput(err)
		}
		one := s.within(ctx)
		defer one.stop()
		if err := report(s.Desk, one, r.ticket, r.outcome); err != nil {
			return unreported(err)
		}
		x.out = append(x.out, `{"done":true}`...)
		return nil
	}
}

// unreported returns why a report had no effect.
func unreported(err error) *problem {
	switch {
	case errors.Is(err, desk.ErrTicket):
		return problemf(http.StatusBadRequest, "This is not a ticket.")
	case errors.Is(err, tidegate.ErrSettled):
		return problemf(http.StatusConflict, "The ticket is settled already, or has expired; nothing was changed.")
	case errors.Is(err, tidegate.ErrLeaseLost):
		return problemf(http.StatusConflict, "The ticket holds no slot any more: its lease has run out, or it was given back.")
	case errors.Is(err, tidegate.ErrElsewhere):
		return problemf(http.StatusMisdirectedRequest, "The counters of this ticket are those of another process, which alone can do this; nothing was changed.")
	case errors.Is(err, tidegate.ErrUnsupported):
		return problemf(http.StatusNotImplemented, "The store cannot do this.")
	}
	p := problemf(http.StatusServiceUnavailable, "The store could not do this: %v.", err)
	p.RetryAfter = time.Second
	return p
}
