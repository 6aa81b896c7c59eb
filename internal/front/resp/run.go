package resp

import "tidegate.dev/tidegate"

// run is decisions of CL.THROTTLE in a row that ended alike. They are counted together: a
// counter that all connections share costs more than a decision.
type run struct {
	decision tidegate.Decision // the first of them
	n        int64
}

// noted adds a decision to the run.
func (c *conn) noted(d *tidegate.Decision) {
	if c.run.n > 0 && alike(&c.run.decision, d) {
		c.run.n++
		return
	}
	c.tellRun()
	c.run = run{*d, 1}
}

// tellRun passes the run to Options.Counted, and ends it.
func (c *conn) tellRun() {
	if c.run.n > 0 {
		c.srv.o.Counted(&c.run.decision, c.run.n)
		c.run.n = 0
	}
}

// alike reports whether two decisions are counted as the same. One with an error is counted by
// itself, since errors differ.
func alike(a, b *tidegate.Decision) bool {
	return a.Err == nil && b.Err == nil && a.OK == b.OK && a.Soft == b.Soft && a.Queued == b.Queued && a.Receipt.Origin == b.Receipt.Origin
}
