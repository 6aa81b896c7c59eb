package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// shelf is deferred requests in memory, for tests of the API.
type shelf struct {
	all      []DeferredRequest
	draining bool
	did      []string
}

func (s *shelf) List(_ context.Context, q DeferredQuestion, n int) (DeferredList, error) {
	list := DeferredList{Waiting: int64(len(s.all)), Max: 1 << 20, Draining: s.draining, Requests: []DeferredRequest{}}
	for _, r := range s.all {
		if (q.ID == "" || q.ID == r.ID) && (q.Rule == "" || q.Rule == r.Rule) && (q.State == "" || q.State == r.State) && len(list.Requests) < n {
			list.Requests = append(list.Requests, r)
		}
	}
	return list, nil
}

func (s *shelf) Retry(ctx context.Context, q DeferredQuestion) (int, error) {
	list, err := s.List(ctx, q, 1)
	if len(list.Requests) == 0 {
		return 0, err
	}
	s.did = append(s.did, fmt.Sprint("retry ", q))
	return 1, nil
}

func (s *shelf) Drop(ctx context.Context, q DeferredQuestion, reason string) (int, error) {
	list, err := s.List(ctx, q, 1)
	if len(list.Requests) == 0 {
		return 0, err
	}
	s.did = append(s.did, fmt.Sprint("drop ", q, " ", reason))
	return 2, nil
}

func (s *shelf) Drain(on bool) error {
	s.draining = on
	return nil
}

func TestDeferred(t *testing.T) {
	s := &shelf{all: []DeferredRequest{
		{ID: "a", Rule: "orders", Key: "ann", State: "waiting", Position: 1, Accepted: time.Unix(1, 0), Expires: time.Unix(2, 0), Method: "POST", Path: "/orders"},
		{ID: "b", Rule: "orders", Key: "bob", State: "dead", Reason: "it was old", Accepted: time.Unix(1, 0), Ended: time.Unix(3, 0), Status: 401},
	}}
	d := newDesk(t, "rules: [{ name: api, per: ip, limits: 2/minute }]\n", func(o *Options) { o.Deferred = s })
	f := func(method, target, body string, code int, want string) {
		t.Helper()
		if w := d.ask(method, target, body); w.Code != code || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s %s: %d %s", method, target, body, w.Code, w.Body)
		}
	}
	f("GET", "/deferred", "", 200, `"ann"`)
	f("GET", "/deferred?state=dead", "", 200, "it was old")
	f("GET", "/deferred?state=old", "", 400, "waiting, trying, done or dead")
	f("GET", "/deferred?id=none", "", 404, "none")
	f("GET", "/deferred?n=0", "", 400, "from 1 to 1000")
	f("GET", "/deferred?m=0", "", 400, "m")
	f("POST", "/deferred/retry", `{"id":"b"}`, 200, `"changed": 1`)
	f("POST", "/deferred/retry", `{}`, 400, "name an id or a rule")
	f("POST", "/deferred/drop", `{"id":"b"}`, 400, "no reason")
	f("POST", "/deferred/drop", `{"reason":"x"}`, 400, "name an id or a rule")
	f("POST", "/deferred/drop", `{"rule":"orders","state":"dead","reason":"x"}`, 200, `"changed": 2`)

	// A rule that is not in force is told, unless requests of it are kept still.
	f("GET", "/deferred?rule=apo", "", 404, "There is no rule apo; did you mean api?")
	f("GET", "/deferred?rule=orders&state=done", "", 200, `"requests": []`)
	f("GET", "/deferred?rule=api", "", 200, `"requests": []`)
	f("POST", "/deferred/retry", `{"rule":"apo"}`, 404, "There is no rule apo; did you mean api?")
	f("POST", "/deferred/drop", `{"rule":"apo","reason":"x"}`, 404, "There is no rule apo; did you mean api?")
	f("POST", "/deferred/retry", `{"rule":"orders","state":"done"}`, 200, `"changed": 0`)
	f("POST", "/deferred/retry", `{"rule":"api"}`, 200, `"changed": 0`)

	f("POST", "/deferred/drain", `{"rule":"orders"}`, 400, "all requests")
	f("POST", "/deferred/drain", `{"off":true,"state":"dead"}`, 400, "all requests")
	f("GET", "/deferred", "", 200, `"draining": false`)
	f("POST", "/deferred/drain", `{}`, 200, "changed")
	f("GET", "/deferred", "", 200, `"draining": true`)
	f("POST", "/deferred/drain", `{"off":true}`, 200, "changed")
	f("GET", "/deferred", "", 200, `"draining": false`)
	if got := strings.Join(s.did, "; "); got != "retry {b  }; drop { orders dead} x" {
		t.Errorf("%s", got)
	}
	none := newDesk(t, "rules: [{ name: api, per: ip, limits: 2/minute }]\n", nil)
	if w := none.ask("GET", "/deferred", ""); w.Code != 404 {
		t.Errorf("without a file: %d %s", w.Code, w.Body)
	}
}
