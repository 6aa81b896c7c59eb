package resp

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
)

// ask reads the request of a command, and answers it by f. For idle, see decide.
func (c *conn) ask(args [][]byte, f func(*conn, *tidegate.Request) desk.Answer, idle string) {
	if _, wrong := c.readRequest(args[1:], false); wrong != "" {
		c.error(wrong)
		return
	}
	c.decide(f, idle)
}

// askOnce is ask for commands that leave nothing to report, or always do.
func (c *conn) askOnce(args [][]byte, f func(*conn, *tidegate.Request) desk.Answer) {
	if _, wrong := c.readRequest(args[1:], false); wrong != "" {
		c.error(wrong)
		return
	}
	if c.asked.question.Report {
		c.error(noReport)
		return
	}
	c.decide(f, "")
}

const noReport = "ERR syntax error: REPORT is for TG.CHECK, TG.MCHECK and TG.ACQUIRE"

// decide answers the request that was read. idle is the reason in the answer if the request is
// allowed without a ticket.
func (c *conn) decide(f func(*conn, *tidegate.Request) desk.Answer, idle string) {
	if c.asked.request == nil {
		if c.srv.o.Refused != nil {
			c.srv.o.Refused(c.asked.question.Refused(c.asked.reason))
		}
		c.answer(&desk.Answer{}, "denied", c.asked.reason)
		return
	}
	a := f(c, c.asked.request)
	c.decided(&a.Decision)
	reason := c.asked.reason
	if reason == "" && a.OK && a.Ticket == "" && a.Err == nil {
		reason = idle
	}
	c.answer(&a, desk.Word(&a.Decision), reason)
}

// open asks for a ticket. A caller that has said REPORT holds a place until it reports.
func open(c *conn, r *tidegate.Request) desk.Answer {
	if c.asked.question.Report {
		return c.srv.o.Desk.OpenPending(c.srv.ctx, r)
	}
	return c.srv.o.Desk.Open(c.srv.ctx, r)
}

func reserve(c *conn, r *tidegate.Request) desk.Answer { return c.srv.o.Desk.Reserve(c.srv.ctx, r) }

func peek(c *conn, r *tidegate.Request) desk.Answer {
	return desk.Answer{Decision: c.srv.o.Desk.Peek(c.srv.ctx, r)}
}

func (c *conn) check(args [][]byte)   { c.ask(args, open, "") }
func (c *conn) peek(args [][]byte)    { c.askOnce(args, peek) }
func (c *conn) reserve(args [][]byte) { c.askOnce(args, reserve) }

func (c *conn) acquire(args [][]byte) {
	c.ask(args, open, "No rule with concurrency applies, so there is no slot to hold.")
}

// checkMany implements TG.MCHECK. All requests are read before one is charged: nothing is if one of
// them is not understood.
func (c *conn) checkMany(args [][]byte) {
	n := 0
	for rest := args; len(rest) > 0; n++ {
		var wrong string
		if rest, wrong = c.readRequest(rest[1:], true); wrong == "" && n == MaxRequests {
			wrong = "ERR too many requests in one command, at most 128"
		}
		if wrong != "" {
			c.error(wrong)
			return
		}
	}
	c.array(n)
	for rest := args; len(rest) > 0; {
		rest, _ = c.readRequest(rest[1:], true) // after the name, or NEXT
		c.decide(open, "")
	}
}

// answer appends a decision in pairs.
func (c *conn) answer(a *desk.Answer, word, reason string) {
	retry := int64(-1)
	if !a.OK && !a.Never && a.Limit != nil {
		retry = milliseconds(a.RetryAfter)
	}
	rule, limit, left, ok := desk.Told(&a.Decision)
	if !ok && (a.Limit == nil || a.Limit.Algorithm != tidegate.Deny) { // an access rule has 0 of 0
		limit, left = -1, -1
	}
	fields := 9
	if a.Slip != "" {
		fields++
	}
	c.pairs(fields)
	c.raw("$8\r\ndecision\r\n")
	c.bulk(word)
	c.raw("$4\r\nrule\r\n")
	c.bulk(rule)
	c.raw("$5\r\nlimit\r\n")
	c.int(limit)
	c.raw("$9\r\nremaining\r\n")
	c.int(left)
	c.raw("$11\r\nretry_after\r\n")
	c.int(retry)
	c.raw("$11\r\nreset_after\r\n")
	c.int(milliseconds(a.ResetAfter))
	c.raw("$4\r\nsoft\r\n")
	c.int(flag(a.Soft))
	c.raw("$6\r\nticket\r\n")
	c.bulk(a.Ticket)
	c.raw("$6\r\nreason\r\n")
	c.bulk(reason)
	if a.Slip != "" {
		c.raw("$4\r\nslip\r\n")
		c.bulk(a.Slip)
	}
}

// usage implements TG.USAGE: an array of limits, each in pairs.
func (c *conn) usage(args [][]byte) {
	if _, wrong := c.readRequest(args[1:], false); wrong != "" {
		c.error(wrong)
		return
	}
	switch {
	case c.asked.question.Report:
		c.error(noReport)
		return
	case c.asked.request == nil:
		c.error("ERR " + c.asked.reason)
		return
	}
	all := c.srv.o.Desk.Usage(c.srv.ctx, c.asked.request)
	c.array(len(all))
	for i := range all {
		u := &all[i]
		if u.Err != nil { // nobody knows
			u.Used, u.Remaining = -1, -1
		}
		c.pairs(7)
		c.raw("$4\r\nrule\r\n")
		c.bulk(u.Rule)
		c.raw("$5\r\nlimit\r\n")
		c.int(u.Limit.Capacity())
		c.raw("$4\r\nused\r\n")
		c.int(u.Used)
		c.raw("$9\r\nremaining\r\n")
		c.int(u.Remaining)
		c.raw("$11\r\nretry_after\r\n")
		c.int(milliseconds(u.RetryAfter))
		c.raw("$11\r\nreset_after\r\n")
		c.int(milliseconds(u.ResetAfter))
		c.raw("$7\r\nblocked\r\n")
		c.int(flag(u.Blocked))
	}
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
