package client

import "time"

// Adaptive throttling as in "Handling Overload" of Site Reliability Engineering (2016): with
// so many requests and accepts in a window, a request is rejected with the probability
// (requests - K*accepts) / (requests + 1).
const (
	throttleSlots = 10
	throttleSlot  = time.Second
	// minThrottled requests have to be in the window before any is rejected.
	minThrottled = 20
	// probeEvery is how often one request is sent whatever the probability.
	probeEvery = time.Second
	// recovered is how many accepts in a row show that refusals are over.
	recovered = 10
)

// throttle counts the results of requests in the last ten seconds. Requests in flight, or waiting
// to be sent, are not counted yet.
type throttle struct {
	slots  [throttleSlots]struct{ requests, accepts int64 }
	newest int64     // the number of the slot that is counted in
	sent   time.Time // the last request that was sent
	streak int       // accepts since the last refusal
}

// slot returns the slot of now, and empties those that are over.
func (t *throttle) slot(now time.Time) int {
	n := now.UnixNano() / int64(throttleSlot)
	for i := max(t.newest+1, n-throttleSlots+1); i <= n; i++ {
		t.slots[i%throttleSlots].requests, t.slots[i%throttleSlots].accepts = 0, 0
	}
	t.newest = max(t.newest, n)
	return int(t.newest % throttleSlots)
}

// ask reports whether a request should be sent. A rejected one is counted as a request that was not
// accepted. random is from [0, 1).
func (t *throttle) ask(now time.Time, k, random float64) bool {
	slot := t.slot(now)
	var requests, accepts int64
	for i := range t.slots {
		requests += t.slots[i].requests
		accepts += t.slots[i].accepts
	}
	over := float64(requests) - k*float64(accepts)
	if requests >= minThrottled && random < over/float64(requests+1) && now.Sub(t.sent) < probeEvery {
		t.slots[slot].requests++
		return false
	}
	t.sent = now
	return true
}

// accept counts a request that the server accepted. After `recovered` of them in a row, earlier
// refusals no longer count; accepts still do.
func (t *throttle) accept(now time.Time) {
	slot := t.slot(now)
	t.slots[slot].requests++
	t.slots[slot].accepts++
	if t.streak++; t.streak != recovered {
		return
	}
	for i := range t.slots {
		t.slots[i].requests = min(t.slots[i].requests, t.slots[i].accepts)
	}
}

// refuse counts a request that the server did not accept.
func (t *throttle) refuse(now time.Time) {
	t.slots[t.slot(now)].requests++
	t.streak = 0
}
