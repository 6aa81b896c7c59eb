package resp

import (
	"net/http"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/internal/lang/describe"
)

// request is how the TG commands describe one.
const request = "PATH path [METHOD method] [HOST host] [IP address] [AS identity value ...] [HEADER name value ...] [BODY text] [COST cost]"

// asked is a request as it was described, and whether the client wants a ticket.
type asked struct {
	*tidegate.Request
	ticket bool
}

// parseRequest reads a description up to its end, or to the word NEXT, and returns what is
// behind that.
func parseRequest(args [][]byte, many bool) (q asked, rest [][]byte, wrong string) {
	var d describe.Request
	var path, host string
	for len(args) > 0 {
		word := args[0]
		if many && equalFold(word, "next") {
			break
		}
		if equalFold(word, "ticket") {
			q.ticket, args = true, args[1:]
			continue
		}
		need := 2
		if equalFold(word, "as") || equalFold(word, "header") {
			need = 3
		}
		if len(args) < need {
			return q, nil, "ERR syntax error: " + quoted(word) + " needs a value"
		}
		value := string(args[need-1])
		switch {
		case equalFold(word, "path"):
			path = value
		case equalFold(word, "method"):
			d.Method = value
		case equalFold(word, "host"):
			host = value
		case equalFold(word, "ip"):
			d.IP = value
		case equalFold(word, "body"):
			d.Body = value
		case equalFold(word, "as"):
			if d.As == nil {
				d.As = map[string]string{}
			}
			d.As[string(args[1])] = value
		case equalFold(word, "header"):
			if d.Header == nil {
				d.Header = http.Header{}
			}
			d.Header.Add(string(args[1]), value)
		case equalFold(word, "cost"):
			n, ok := integer(args[1])
			if !ok || n < 1 {
				return q, nil, "ERR COST is not a positive integer"
			}
			d.Cost = n
		default:
			return q, nil, "ERR syntax error: " + quoted(word) + " is not one of PATH, METHOD, HOST, IP, AS, HEADER, BODY, COST"
		}
		args = args[need:]
	}
	if path == "" || path[0] != '/' {
		return q, nil, "ERR PATH is missing or does not start with a slash"
	}
	d.URL = path
	if host != "" {
		if d.Header == nil {
			d.Header = http.Header{}
		}
		d.Header.Set("Host", host)
	}
	var err error
	if q.Request, err = d.Request(); err != nil {
		return q, nil, "ERR " + err.Error()
	}
	return q, args, ""
}

// quoted is a word of the client as an error may show it.
func quoted(b []byte) string { return "'" + string(b[:min(len(b), 64)]) + "'" }

// ask reads the request of a command, and answers what is wrong with it.
func (c *conn) ask(args [][]byte) (asked, bool) {
	q, _, wrong := parseRequest(args[1:], false)
	if wrong != "" {
		c.error(wrong)
	}
	return q, wrong == ""
}

func (c *conn) check(args [][]byte) {
	if q, ok := c.ask(args); ok {
		c.checkOne(&q)
	}
}

// checkOne decides for good, unless the client wants to come back with a ticket.
func (c *conn) checkOne(q *asked) {
	if q.ticket {
		c.answer(c.srv.o.Desk.Open(c.srv.ctx, q.Request))
	} else {
		c.answer(desk.Answer{Decision: c.srv.o.Desk.Check(c.srv.ctx, q.Request)})
	}
}

func (c *conn) peek(args [][]byte) {
	if q, ok := c.ask(args); ok {
		c.answer(desk.Answer{Decision: c.srv.o.Desk.Peek(c.srv.ctx, q.Request)})
	}
}

func (c *conn) reserve(args [][]byte) {
	if q, ok := c.ask(args); ok {
		c.answer(c.srv.o.Desk.Reserve(c.srv.ctx, q.Request))
	}
}

func (c *conn) acquire(args [][]byte) {
	if q, ok := c.ask(args); ok {
		c.answer(c.srv.o.Desk.Open(c.srv.ctx, q.Request))
	}
}

// checkMany is TG.MCHECK. Nothing is charged if one of the requests is not understood.
func (c *conn) checkMany(args [][]byte) {
	var all []asked
	for rest := args; len(rest) > 0; {
		if len(all) == MaxRequests {
			c.error("ERR too many requests in one command, at most 128")
			return
		}
		q, behind, wrong := parseRequest(rest[1:], true) // after the name, or NEXT
		if wrong != "" {
			c.error(wrong)
			return
		}
		all, rest = append(all, q), behind
	}
	c.array(len(all))
	for i := range all {
		c.checkOne(&all[i])
	}
}

// answer is a decision in pairs.
func (c *conn) answer(a desk.Answer) {
	c.decided(&a.Decision)
	retry := int64(-1)
	if !a.OK && !a.Never {
		retry = milliseconds(a.RetryAfter)
	}
	rule, limit, left := told(a.Limit, a.Remaining)
	c.pairs(8)
	c.bulk("decision")
	c.bulk(desk.Word(&a.Decision))
	c.bulk("rule")
	c.bulk(rule)
	c.bulk("limit")
	c.int(limit)
	c.bulk("remaining")
	c.int(left)
	c.bulk("retry_after")
	c.int(retry)
	c.bulk("reset_after")
	c.int(milliseconds(a.ResetAfter))
	c.bulk("soft")
	c.int(flag(a.Soft))
	c.bulk("ticket")
	c.bulk(a.Ticket)
}

// told is what clients are told of a limit: its rule, its number and what is left of that,
// which of a ceiling or a block is that of the limit below it.
func told(l *tidegate.Limit, remaining int64) (rule string, limit, left int64) {
	if l == nil {
		return "", -1, -1
	}
	rule, limit, left = l.Name, l.Capacity(), remaining
	if l.Terms != nil {
		rule = l.Terms.Rule
		if below := l.Terms.Answer.Nominal; below != nil {
			left = max(0, left-(limit-below.Capacity()))
			limit = below.Capacity()
		}
	}
	return rule, limit, left
}

// usage is TG.USAGE: an array of limits, each in pairs.
func (c *conn) usage(args [][]byte) {
	q, ok := c.ask(args)
	if !ok {
		return
	}
	all := c.srv.o.Desk.Usage(c.srv.ctx, q.Request)
	c.array(len(all))
	for i := range all {
		u := &all[i]
		c.pairs(7)
		c.bulk("rule")
		c.bulk(u.Rule)
		c.bulk("limit")
		c.int(u.Limit.Capacity())
		c.bulk("used")
		c.int(u.Used)
		c.bulk("remaining")
		c.int(u.Remaining)
		c.bulk("retry_after")
		c.int(milliseconds(u.RetryAfter))
		c.bulk("reset_after")
		c.int(milliseconds(u.ResetAfter))
		c.bulk("blocked")
		c.int(flag(u.Blocked))
	}
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
