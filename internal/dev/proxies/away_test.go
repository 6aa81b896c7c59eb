package proxies

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// While Tidegate does not answer, or answers that it cannot, requests pass by the files of
// deploy, and are refused by the same files without the lines that say so.
func TestTidegateIsAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // its backlog takes connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	each(t, func(t *testing.T, p proxy) {
		for name, door := range map[string]string{"silent": silent.Addr().String(), "gone": gone.Addr().String(), "busy": strings.TrimPrefix(busy.URL, "http://")} {
			t.Run(name, func(t *testing.T) {
				if p.opens && !(p.refuses503 && name == "busy") {
					o := newOrigin(t)
					c := newClient(t, p.hasty(t, door, o.addr))
					for _, method := range []string{"GET", "POST"} {
						got := c.send(method, "/x", strings.Repeat("b", 3*(len(method)-3)))
						if arrived := o.reached(); got.status != 200 || len(arrived) != 1 || arrived[0].method != method || len(arrived[0].body) != 3*(len(method)-3) {
							t.Errorf("open: %s: %d, %+v", method, got.status, arrived)
						}
					}
				}
				o := newOrigin(t)
				c := newClient(t, p.hasty(t, door, o.addr, p.closed...))
				if got := c.get("/x"); got.status < 500 || len(o.reached()) > 0 {
					t.Errorf("closed: %+v", got)
				}
			})
		}
	})
}

// Files that do not fail open limit all the same.
func TestClosedFilesLimit(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, twoPerMinute)
		c := newClient(t, p.run(t, d.addr, o.addr, p.closed...))
		for i, want := range []int{200, 200, 429} {
			if got := c.get("/two/x"); got.status != want || (got.header.Get("Retry-After") != "") != (want == 429) {
				t.Errorf("request %d: %+v", i, got)
			}
		}
		if got := c.get("/denied/x"); got.status != 403 {
			t.Errorf("denied: %+v", got)
		}
	})
}

// brokenStore never answers.
type brokenStore struct{}

func (brokenStore) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, errors.New("broken")
}

func (brokenStore) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	return errors.New("broken")
}

// When the store is away, Tidegate is not: what a rule says of that holds, and no proxy fails
// open against it.
func TestStoreIsAway(t *testing.T) {
	const rules = `
version: 1
rules:
  - { name: closed, match: /closed/, per: ip, limits: 5/minute, on_store_failure: deny }
  - { name: open, match: /open/, per: ip, limits: 5/minute, on_store_failure: allow }
`
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoorOn(t, rules, brokenStore{})
		c := newClient(t, p.run(t, d.addr, o.addr))
		if got := c.get("/closed/x"); got.status < 400 || len(o.reached()) > 0 {
			t.Errorf("closed: %+v", got)
		}
		if got := c.get("/open/x"); got.status != 200 || len(o.reached()) != 1 {
			t.Errorf("open: %+v", got)
		}
	})
}

// A rule that refuses with a status of its own, even one that looks like an absence, refuses.
func TestRuleRefusesWith503(t *testing.T) {
	const rules = "version: 1\nrules: [ { name: own, match: /own/, per: ip, limits: 1/hour, respond: { status: 503 } } ]\n"
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, rules)
		c := newClient(t, p.run(t, d.addr, o.addr))
		for i, want := range []int{200, 503, 503} {
			got := c.get("/own/x")
			if arrived := len(o.reached()); (got.status == 200) != (want == 200) || (arrived == 1) != (want == 200) || p.name != "nginx" && got.status != want {
				t.Errorf("request %d: %d, %d arrived", i, got.status, arrived)
			}
		}
	})
}

// A request whose origin fails is not sent again because of how Tidegate's absence is
// handled, and is counted once.
func TestOriginIsAway(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	each(t, func(t *testing.T, p proxy) {
		d := newDoor(t, twoPerMinute)
		edits := map[string][]string{"haproxy": {"backend application\n", "backend application\n    retries 0\n"}} // it sleeps in between
		c := newClient(t, p.run(t, d.addr, gone.Addr().String(), edits[p.name]...))
		for i, want := range []int{502, 502, 429} {
			got := c.get("/two/x")
			if got.status != want && (got.status != 503 || want != 502) { // HAProxy says 503
				t.Errorf("request %d: %d, want %d", i, got.status, want)
			}
			if asked := d.decisions(); len(asked) != 1 {
				t.Errorf("request %d was asked about %d times", i, len(asked))
			}
		}
	})
}

// Tidegate is asked again as soon as it is back.
func TestTidegateComesBack(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		if !p.opens {
			t.Skip(p.name + " does not fail open")
		}
		o, d := newOrigin(t), newDoor(t, twoPerMinute)
		c := newClient(t, p.run(t, d.addr, o.addr))
		if got := c.get("/denied/x"); got.status != 403 {
			t.Fatalf("%+v", got)
		}
		d.stop()
		if got := c.get("/denied/x"); got.status != 200 {
			t.Errorf("while it is away: %+v", got)
		}
		d.start(t)
		if got := c.get("/denied/x"); got.status != 403 {
			t.Errorf("when it is back: %+v", got)
		}
	})
}
