package question

import (
	"reflect"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/strict"
)

// What was asked is not kept: it may be a part of something large, or be written over.
func TestResetKeepsNothing(t *testing.T) {
	for _, ask := range []string{"ip", "body.a", "header X-A"} {
		q := &Question{Method: "POST", Host: "a.example", Target: "/a%20b?x=1", IP: "192.0.2.1", Headers: []Pair{{"X-A", "1"}}, Body: `{"a":1}`, As: []Pair{{"user", "42"}}}
		r, denied, err := q.Request(strict.Paths{})
		if denied != nil || err != nil {
			t.Fatal(denied, err)
		}
		r.Value(ask)
		q.Reset()
		q.request = tidegate.Request{} // keeps memory for keys
		q.http.ProtoMajor = 0          // is always the same
		q.Headers, q.As = q.Headers[:1], q.As[:1]
		if want := (Question{Headers: make([]Pair, 1), As: make([]Pair, 1)}); !reflect.DeepEqual(*q, want) {
			t.Errorf("%s: %+v is left", ask, q)
		}
	}
}

// A question that is used again remembers nothing.
func TestReset(t *testing.T) {
	q := &Question{
		Method: "POST", Host: "a.example", Target: "/a?x=1", IP: "192.0.2.1", Headers: []Pair{{"X-A", "1"}},
		Body: `{"a":1}`, Cost: 3, As: []Pair{{"user", "42"}},
	}
	r, denied, err := q.Request(strict.Paths{})
	if denied != nil || err != nil {
		t.Fatal(denied, err)
	}
	if v, _ := r.Value("body.a"); v != "1" || r.Cost != 3 || r.Host != "a.example" {
		t.Errorf("%+v", r)
	}
	q.Reset()
	r, denied, err = q.Request(strict.Paths{})
	if denied != nil || err != nil || r.Method != "GET" || r.Path != "/" || r.Host != "" || r.Cost != 0 {
		t.Fatalf("%+v, %v, %v", r, denied, err)
	}
	for _, name := range []string{"ip", "addr", "client header X-A", "query x", "body.a", "user"} {
		if v, ok := r.Value(name); ok {
			t.Errorf("%s is still %q", name, v)
		}
	}
	if v, known := q.Identity("user"); known {
		t.Errorf("user is still %q", v)
	}
	if _, missing := q.Identity("ip"); !missing {
		t.Error("the address is not known to be missing")
	}
}

func TestNetworks(t *testing.T) {
	f := func(ip, name, want string) {
		t.Helper()
		q := &Question{IP: ip}
		r, _, err := q.Request(strict.Paths{})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := r.Value(name); got != want {
			t.Errorf("%s of %s: %q, want %q", name, ip, got, want)
		}
	}
	f("192.0.2.1", "ip", "192.0.2.1")
	f("192.0.2.1", "ip /24 /48", "192.0.2.0/24")
	f("192.0.2.1", "addr", "192.0.2.1")
	f("::ffff:192.0.2.1", "ip", "192.0.2.1")
	f("2001:DB8::1", "ip", "2001:db8::/64")
	f("2001:db8::1", "ip /24 /48", "2001:db8::/48")
	f("2001:DB8::1", "addr", "2001:db8::1")
	f("", "ip", "")
}

// The usual question is put without garbage.
func TestAllocations(t *testing.T) {
	q := &Question{As: []Pair{{"user", "42"}}, Method: "GET", Target: "/api/things", IP: "192.0.2.1", Host: "api.example"}
	if n := testing.AllocsPerRun(100, func() {
		r, _, _ := q.Request(strict.Paths{})
		r.Value("ip")
		q.Identity("user")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRequest: no description panics, and none that passes has a path that is not clean.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "h", "/a?b", "192.0.2.1", "X-A", "v", "{}")
	f.Add("POST", "", "http://h/a", "::1", "Host", "h", "")
	f.Fuzz(func(t *testing.T, method, host, target, ip, name, value, body string) {
		q := &Question{Method: method, Host: host, Target: target, IP: ip, Headers: []Pair{{name, value}}, Body: body}
		r, denied, err := q.Request(strict.Paths{})
		if denied != nil || err != nil {
			return
		}
		for _, name := range []string{"ip", "addr", "ip /8 /16", "header " + name, "client header " + name, "cookie " + value, "query a", "body.a", "basic.user", name} {
			r.Value(name)
		}
		if r.Path != "*" && (strings.Contains(r.Path, "/../") || !strings.HasPrefix(r.Path, "/") && r.Path != "") {
			t.Errorf("%q is %q", target, r.Path)
		}
	})
}
