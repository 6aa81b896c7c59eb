package rules

import (
	"fmt"
	"testing"
	"time"
)

// No decision waits for a reload, however long that takes to put rules in force.
func TestRequestsDoNotWaitForAReload(t *testing.T) {
	const user = "identify: { user: header X-User }\n"
	d := newDesk(t, user+"rules: [{ name: api, per: user, limits: 10/minute }]\n")
	f := func(name string) {
		t.Helper()
		d.live.mu.Lock() // as while one is under way
		defer d.live.mu.Unlock()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 100 {
				d.live.Match(request("GET /", "header X-User", fmt.Sprint("user-", i), "ip", "192.0.2.7"), nil)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: requests wait", name)
		}
	}
	f("the first rules")
	d.reload(user + "rules: [{ name: api, per: user, limits: 20/minute }]\n")
	f("other numbers")
	d.reload(user + "rules: [{ name: api, per: user, limits: { rate: 20/minute, algorithm: fixed_window } }]\n")
	f("another algorithm, beside the counters of before")
	d.set(override("o-1", "user=user-1", "api", "40/minute"), ban("b-1", "user=user-2", ""))
	f("measures")
}
