package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// values is what a front end knows of a request, by the names rules ask for.
type values map[string]string

func (v values) Value(name string) (string, bool) {
	text, ok := v[name]
	return text, ok
}

// identified also answers for identities by their names.
type identified struct {
	values
	as map[string]string
}

func (v identified) Identity(name string) (value string, known bool) {
	value, known = v.as[name]
	return value, known
}

// request makes a request of "POST host/path" and pairs of names and values.
func request(line string, pairs ...string) *tidegate.Request {
	method, rest, _ := strings.Cut(line, " ")
	host, path, _ := strings.Cut(rest, "/")
	v := values{}
	for i := 0; i < len(pairs); i += 2 {
		v[pairs[i]] = pairs[i+1]
	}
	if ip, ok := v["ip"]; ok && v["addr"] == "" {
		v["addr"] = ip
	}
	return &tidegate.Request{Method: method, Host: host, Path: "/" + path, Values: v}
}

// as makes a request by somebody who is known by names of identify.
func as(line string, pairs ...string) *tidegate.Request {
	r := request(line)
	v := identified{values{}, make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		v.as[pairs[i]] = pairs[i+1]
	}
	r.Values = v
	return r
}

func parse(t testing.TB, src string, c Config) *Set {
	t.Helper()
	if !strings.Contains(src, "version:") {
		src = "version: 1\n" + src
	}
	set, err := Parse("rules.yaml", []byte(src), c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// show writes checks as a reader would say them, one a line.
func show(checks []tidegate.Check) string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%s", c.Limit)
		if c.Limit.Algorithm != tidegate.Deny {
			fmt.Fprintf(&b, " per %s", c.Limit.Scope)
		}
		if c.Key != "" {
			fmt.Fprintf(&b, " %s", c.Key)
		}
		if c.Cost != 1 {
			fmt.Fprintf(&b, " cost %d", c.Cost)
		}
		if c.MaxWait > 0 {
			fmt.Fprintf(&b, " wait %s", c.MaxWait)
		}
		if c.Estimate {
			b.WriteString(" estimate")
		}
		if c.Advisory {
			b.WriteString(" advisory")
		}
		if role := c.Limit.Terms.Role; role != tidegate.Decides {
			fmt.Fprintf(&b, " %s", roleTexts[role])
		}
		if shared := c.Limit.Terms.Handling.Consistency; shared != tidegate.Strict {
			fmt.Fprintf(&b, " %s", shared)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// heldTo tests what requests are held to.
func heldTo(t *testing.T, set *Set) func(r *tidegate.Request, want ...string) {
	return func(r *tidegate.Request, want ...string) {
		t.Helper()
		got := show(set.Match(r, nil))
		if wanted := strings.Join(append(want, ""), "\n"); got != wanted {
			t.Errorf("%s %s%s %v is held to\n%swant\n%s", r.Method, r.Host, r.Path, r.Values, got, wanted)
		}
	}
}

// desk is a Gate with a clock of its own.
type desk struct {
	t     *testing.T
	live  *Live
	gate  *tidegate.Gate
	store tidegate.Store
	clock time.Time
}

// newDesk opens on a Sunday at noon. The clock of the rules is that of the store.
func newDesk(t *testing.T, src string) *desk {
	t.Helper()
	d := &desk{t: t, clock: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	d.live = NewLive(parse(t, src, d.config()))
	d.store = memory.Open(memory.Config{Now: d.now})
	d.gate = tidegate.NewGate(d.live, d.store)
	return d
}

func (d *desk) now() time.Time { return d.clock }
func (d *desk) config() Config { return Config{Now: d.now} }

func (d *desk) reload(src string) {
	d.t.Helper()
	d.live.Swap(parse(d.t, src, d.config()))
}

func (d *desk) wait(by time.Duration) { d.clock = d.clock.Add(by) }

func (d *desk) ask(r *tidegate.Request) tidegate.Decision {
	return d.gate.Decide(context.Background(), r)
}

// passes wants so many requests to be admitted, and the next to be refused.
func (d *desk) passes(n int, r *tidegate.Request) {
	d.t.Helper()
	for i := range n {
		if a := d.ask(r); !a.OK {
			d.t.Fatalf("%s %s %v: number %d is refused by %v", r.Method, r.Path, r.Values, i+1, a.Limit)
		}
	}
	d.refuses(r)
}

func (d *desk) refuses(r *tidegate.Request) tidegate.Decision {
	d.t.Helper()
	a := d.ask(r)
	if a.OK {
		d.t.Fatalf("%s %s %v passes", r.Method, r.Path, r.Values)
	}
	return a
}

func (d *desk) admits(n int, r *tidegate.Request) {
	d.t.Helper()
	for i := range n {
		if a := d.ask(r); !a.OK {
			d.t.Fatalf("%s %s %v: number %d is refused by %v", r.Method, r.Path, r.Values, i+1, a.Limit)
		}
	}
}
