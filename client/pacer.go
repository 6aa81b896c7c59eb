package client

import "time"

// pacer spreads requests over the time until a limit is renewed, once little of it remains.
type pacer struct {
	interval time.Duration // between two requests; 0 means that there is no need
	until    time.Time     // when the limit that asks for it is renewed
	next     time.Time     // the next free turn
}

// learn sets the pace from the newest response: the slowest that a scarce limit asks for, or none. A
// limit is scarce once less than share of it, a fraction, remains.
func (p *pacer) learn(all []quota, now time.Time, share float64) {
	if len(all) == 0 { // a response that says nothing, as an error page may
		return
	}
	var interval, reset time.Duration
	for _, q := range all {
		if !q.scarce(share) {
			continue
		}
		if each := q.reset / time.Duration(q.left+1); each > interval {
			interval, reset = each, q.reset
		}
	}
	p.interval, p.until = interval, now.Add(reset)
	if interval == 0 {
		p.next = now
	} else if first := now.Add(interval); p.next.Before(first) {
		p.next = first
	}
}

// scarce reports whether requests should be spread over the time until q is renewed. A limit of
// unknown size, or one that counts something else than requests, such as tokens, is scarce only once
// it is used up.
func (q *quota) scarce(share float64) bool {
	if q.left < 0 || q.reset <= 0 {
		return false
	}
	return q.left == 0 || q.unit == "" && float64(q.left) < share*float64(q.limit)
}

// turn returns how long the next request has to wait, and books that turn for it. A request for
// which nothing remains waits until the limit is renewed, and up to a tenth longer, at random.
// If the wait would be longer than longest, it returns 0 and books nothing: the request is sent at
// once, and the server decides.
func (p *pacer) turn(now time.Time, longest time.Duration) time.Duration {
	if p.interval == 0 || !now.Before(p.until) {
		return 0
	}
	at := p.next
	if at.Before(now) {
		at = now
	}
	wait := at.Sub(now)
	if renewed := p.until.Sub(now); wait >= renewed {
		if renewed > longest {
			return 0
		}
		return renewed + upTo(min(renewed/10, longest-renewed))
	}
	if wait > longest {
		return 0
	}
	p.next = at.Add(p.interval)
	return wait
}
