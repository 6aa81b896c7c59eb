package tidegate_test

import (
	"runtime"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

func TestRequestValues(t *testing.T) {
	if v, ok := new(tidegate.Request).Value("ip"); v != "" || ok {
		t.Errorf("a request without values has the ip %q", v)
	}
	r := tidegate.Request{Values: values{"ip": "192.0.2.1"}}
	if v, ok := r.Value("ip"); v != "192.0.2.1" || !ok {
		t.Errorf("ip is %q, %v", v, ok)
	}
}

type values map[string]string

func (v values) Value(name string) (string, bool) {
	s, ok := v[name]
	return s, ok
}

// Keys of one request stay what they were while others are made, and a copy of
// the request does not write into them.
func TestRequestKeys(t *testing.T) {
	r := new(tidegate.Request)
	for range 3 {
		var keys, want []string
		for i := range 50 { // more than a request has room for at first
			parts := []string{strings.Repeat("a", i), "b", strings.Repeat("c", 2*i)}[:1+i%3]
			keys, want = append(keys, r.Key(parts...)), append(want, tidegate.Key(parts...))
			r2 := *r
			keys, want = append(keys, r2.Key("of", "a", "copy")), append(want, "2:of1:a4:copy")
		}
		for i := range keys {
			if keys[i] != want[i] {
				t.Errorf("key %d is %q, want %q", i, keys[i], want[i])
			}
		}
		r.Path = "/"
		r.Reset()
		if r.Path != "" {
			t.Errorf("after Reset the path is %q", r.Path)
		}
	}
	r2 := *r
	r2.Reset() // a copy does not take the memory along
	if a, b := r.Key("alice"), r2.Key("bobby"); a != "=alice" || b != "=bobby" {
		t.Errorf("%q and %q, want =alice and =bobby", a, b)
	}
}

// FuzzRequestKey: it is tidegate.Key, whatever was made before.
func FuzzRequestKey(f *testing.F) {
	f.Add("a", "bc", "|")
	f.Add("", strings.Repeat("x", 63), "x")
	f.Add(strings.Repeat("y", 64), strings.Repeat("x", 300), "x")
	r := new(tidegate.Request)
	f.Fuzz(func(t *testing.T, a, b, cut string) {
		r.Reset()
		all := [][]string{nil, {a}, {b}, {a, b}, {"", a, "", b}, strings.Split(a, cut), strings.Split(b, cut)}
		var keys []string
		for _, parts := range all {
			keys = append(keys, r.Key(parts...))
		}
		for i, parts := range all {
			if want := tidegate.Key(parts...); keys[i] != want {
				t.Errorf("Key(%q) = %q, want %q", parts, keys[i], want)
			}
		}
	})
}

func TestRequestKeysAllocateNothing(t *testing.T) {
	r := new(tidegate.Request)
	user, route, long := "alice", "/api/{id}", strings.Repeat("x", 200)
	use := func() {
		r.Reset()
		for range 6 {
			if r.Key(user) == "" || r.Key(user, route) == "" || r.Key(user, long) == "" {
				t.Fatal("no key")
			}
		}
	}
	use()
	if n := testing.AllocsPerRun(100, use); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What one client made a request grow to is not kept for the next.
func TestRequestKeepsLittleMemory(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	kept := make([]tidegate.Request, 100)
	before := heap()
	for i := range kept {
		kept[i].Key(long)
		kept[i].Reset()
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("%d requests keep %d bytes", len(kept), grown)
	}
	runtime.KeepAlive(kept)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
