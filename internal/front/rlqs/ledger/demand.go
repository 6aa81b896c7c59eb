package ledger

import "time"

// demand estimates the rate of requests at a node from its reports.
type demand struct {
	perSecond float64
	known     bool
	begun     bool
	since     time.Duration // when the last estimate was made; before that, when the first report came
	pending   float64       // requests reported since then
}

const (
	// tooShort is the time below which no estimate is made: the requests wait for the next report.
	tooShort = 20 * time.Millisecond
	// halfWeight is the time since the last estimate after which new reports weigh more than it.
	halfWeight = 500 * time.Millisecond
)

// report updates the estimate by the requests of a report; those of the first are not counted. The time between two reports is measured between their
// arrivals: the times in Envoy's reports are whole seconds.
func (d *demand) report(now time.Duration, requests uint64) {
	if !d.begun { // the first report only announces the node
		d.begun, d.since = true, now
		return
	}
	d.pending += float64(requests)
	t := now - d.since
	if t < tooShort {
		return
	}
	seen := d.pending / t.Seconds()
	if d.known {
		seen = d.perSecond + (seen-d.perSecond)*t.Seconds()/(t+halfWeight).Seconds()
	}
	d.perSecond, d.known, d.since, d.pending = seen, true, now, 0
}
