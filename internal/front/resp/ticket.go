package resp

import (
	"errors"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/desk"
)

// settle implements TG.SETTLE ticket [STATUS status] [COST cost].
func (c *conn) settle(args [][]byte) {
	var o tidegate.Outcome
	var seen once
	for rest := args[2:]; len(rest) > 0; rest = rest[2:] {
		status, cost := equalFold(rest[0], "status"), equalFold(rest[0], "cost")
		if !status && !cost || len(rest) == 1 {
			c.error("ERR syntax error: want STATUS status or COST cost")
			return
		}
		if status && seen.again(0) || cost && seen.again(1) {
			c.error("ERR syntax error: " + quoted(rest[0]) + " is there twice")
			return
		}
		n, ok := integer(rest[1])
		switch {
		case status && ok && n >= 100 && n <= 599:
			o.Status = int(n)
		case cost && ok && n >= 0:
			o.Cost, o.CostKnown = n, true
		default:
			c.error("ERR " + quoted(rest[0]) + " is not an integer or out of range")
			return
		}
	}
	c.done(c.srv.o.Desk.Settle(c.srv.ctx, string(args[1]), o))
}

func (c *conn) renew(args [][]byte) { c.done(c.srv.o.Desk.Renew(c.srv.ctx, string(args[1]))) }

func (c *conn) release(args [][]byte) { c.done(c.srv.o.Desk.Release(c.srv.ctx, string(args[1]))) }

// done answers 1 if something was done, and 0 if it was too late: then nothing has changed.
func (c *conn) done(err error) {
	switch {
	case err == nil:
		c.int(1)
	case errors.Is(err, tidegate.ErrSettled), errors.Is(err, tidegate.ErrLeaseLost):
		c.int(0)
	case errors.Is(err, desk.ErrTicket):
		c.error("BADTICKET " + err.Error())
	case errors.Is(err, tidegate.ErrElsewhere):
		c.error("ELSEWHERE " + err.Error())
	case errors.Is(err, tidegate.ErrUnsupported):
		c.error("UNSUPPORTED " + err.Error())
	default:
		c.failed(err)
	}
}
