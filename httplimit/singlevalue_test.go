package httplimit

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// sender is a way to say a value under the name "key", perhaps several times.
type sender struct {
	asks string
	say  func(r *http.Request, values ...string)
}

var senders = []sender{
	{"client header Key", func(r *http.Request, values ...string) { r.Header["Key"] = values }},
	{"client header X-Api-Key", func(r *http.Request, values ...string) { r.Header["X-Api-Key"] = values }},
	{"client header X-Api-Key", func(r *http.Request, values ...string) { // one of them as CGI would spell it
		r.Header["X-Api-Key"] = values[:1]
		if len(values) > 1 {
			r.Header["X-Api_key"] = values[1:]
		}
	}},
	{"cookie key", func(r *http.Request, values ...string) {
		r.Header["Cookie"] = []string{"a=1; key=" + strings.Join(values, "; key=")}
	}},
	{"cookie key", func(r *http.Request, values ...string) { // a line for each
		for _, v := range values {
			r.Header.Add("Cookie", "key="+v)
		}
	}},
	{"query key", func(r *http.Request, values ...string) { r.URL.RawQuery = "a=1&key=" + strings.Join(values, "&key=") }},
	{"query key", func(r *http.Request, values ...string) { // names that are encoded differently
		r.URL.RawQuery = "key=" + values[0]
		for _, v := range values[1:] {
			r.URL.RawQuery = "k%65y=" + v + "&" + r.URL.RawQuery
		}
	}},
	{"body.key", body(`"key":`)},
	{"body.key", body(`"key":`, `"k\u0065y":`)},
	{"body.key", body(`"key":`, `"Key":`)},
	{"basic.user", func(r *http.Request, values ...string) {
		for _, v := range values {
			r.SetBasicAuth(v, "p")
			r.Header["X"] = append(r.Header["X"], r.Header.Get("Authorization"))
		}
		r.Header["Authorization"] = r.Header["X"]
		delete(r.Header, "X")
	}},
}

// body says each value under the next of names, the last of them for the rest.
func body(names ...string) func(r *http.Request, values ...string) {
	return func(r *http.Request, values ...string) {
		var members []string
		for i, v := range values {
			members = append(members, fmt.Sprintf("%s%q", names[min(i, len(names)-1)], v))
		}
		r.Header.Set("Content-Type", "application/json")
		text := "{" + strings.Join(members, ",") + "}"
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

// Whatever says who is asking, twice and differently, says nothing; the same
// twice is once. Over HTTP/1.1 and HTTP/2.
func TestTwoDifferentValuesAreMissing(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, s := range senders {
			srv := httptest.NewUnstartedServer(asks(hello, s.asks))
			srv.EnableHTTP2 = http2
			srv.StartTLS()
			f := func(want string, values ...string) {
				t.Helper()
				r, err := http.NewRequest(http.MethodPost, srv.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				s.say(r, values...)
				res, err := srv.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if got := res.Header.Get("Found"); got != want || res.ProtoAtLeast(2, 0) != http2 {
					t.Errorf("%s, %s of %q: %q, want %q", s.asks, res.Proto, values, got, want)
				}
			}
			f("a", "a")
			f("a", "a", "a")
			f("", "a", "b")
			f("", "b", "a")
			f("", "a", "b", "a")
			f("", "a", "a", "b")
			f("", "a", "")
			f("", "", "a")
			f("", "")
			srv.Close()
		}
	}
}

// The middleware that counts by one header goes by the same reading.
func TestTwoKeysAreCountedByAddress(t *testing.T) {
	store := &script{}
	h := Limit(tidegate.New(store, tidegate.PerMinute(1)), Header("X-Api-Key"))(hello)
	for _, lines := range [][]string{{"a", "b"}, {"b", "a"}, {"a", "a", "b"}, {"", "a"}} {
		get(h, func(r *http.Request) { r.Header["X-Api-Key"] = lines })
		if got := store.keys[len(store.keys)-1]; got != "\x00i192.0.2.1" {
			t.Errorf("%q is counted as %q", lines, got)
		}
	}
}

// Spellings of names and values that servers read differently.
func TestValuesThatServersReadDifferently(t *testing.T) {
	f := func(name string, change func(*http.Request), want string) {
		t.Helper()
		r := from("192.0.2.1:1")
		change(r)
		if got, _ := (&values{request: r, client: &ClientIP{}}).Value(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	line := func(name string, lines ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = lines }
	}
	raw := func(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }
	// A line is one value, commas included.
	f("client header X-Key", line("X-Key", "a, b"), "a, b")
	f("client header X-Key", line("X-Key", "a, b", "a"), "")
	// HTTP/2 lets spaces around a value in; upstream it has none.
	f("client header X-Key", line("X-Key", " a\t"), "a")
	f("client header X-Key", line("X-Key", "a", "a "), "a")
	f("client header X-Key", line("X_key", "a"), "")
	// Servers take the scheme of credentials in any case.
	f("client header Authorization", line("Authorization", "Bearer a"), "Bearer a")
	f("client header Authorization", line("Authorization", "bEARER \t a b"), "Bearer a b")
	f("client header Authorization", line("Authorization", "basic\tYTpi", "Basic YTpi"), "Basic YTpi")
	f("client header Authorization", line("Authorization", "Token  a"), "Token  a")
	f("client header Authorization", line("Authorization", "bearer"), "bearer")
	f("basic.user", line("Authorization", "BASIC  YTpi"), "a")
	f("client header X-Key", line("X-Key", "bearer  a"), "bearer  a")
	f("cookie id", line("Cookie", `id="a"; id=a`), "a")
	f("cookie id", line("Cookie", `id=a; id="b`), "")
	f("cookie id", line("Cookie", "id=a; id=b\xff"), "")
	f("cookie id", line("Cookie", "id=a; %69d=b"), "")
	f("cookie id", line("Cookie", "%69d=b"), "")
	f("cookie id", line("Cookie", "id=a; id"), "")
	// Many servers decode values of cookies.
	f("cookie id", line("Cookie", "id=%61"), "a")
	f("cookie id", line("Cookie", `id="s%3a%61+b"; id=s:a%2Bb`), "s:a+b")
	f("cookie id", line("Cookie", "id=a; id=%62"), "")
	f("cookie id", line("Cookie", "id=%2561"), "%61")
	f("cookie id", line("Cookie", "id=%61%zz"), "%61%zz")
	f("cookie id", line("Cookie", "id=a;id =a; xid=b;Id=c"), "a")
	f("query id", raw("id=a&id=b;c"), "")
	f("query id", raw("id=a&x=1;id=b"), "")
	f("query id", raw("id=a&x=1;y=2"), "a")
	f("query id", raw("id=a&id=%zz"), "")
	f("query id", raw("id=a&id"), "")
	f("query id", raw("id=a&ID=b"), "a")
	f("query id", raw("id=a+b&id=a%20b"), "a b")
	f("body.n", func(r *http.Request) {
		body(`"n":`)(r, "x")
		r.Header["Content-Type"] = []string{"application/json", "text/plain"}
	}, "")
}

// A value that goes upstream over HTTP/1.1 without its spaces has none here: else
// one key would be many.
func TestSpacesOfHTTP2AreNoOtherKey(t *testing.T) {
	found := make(chan string, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		found <- header(r, "X-Key")
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var block []byte // of HPACK: literals that are not indexed
	for _, s := range []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "x-key", "\t k "} {
		if len(block) == 0 || s[0] == ':' || s == "x-key" {
			block = append(block, 0)
		}
		block = append(append(block, byte(len(s))), s...)
	}
	frame := func(kind, flags, stream byte, payload []byte) []byte {
		return append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}, payload...)
	}
	const settings, headers, endStreamAndHeaders = 4, 1, 5
	out := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settings, 0, 0, nil)...)
	if _, err := conn.Write(append(out, frame(headers, endStreamAndHeaders, 1, block)...)); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-found:
		if got != "k" {
			t.Errorf("found %q", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the request did not arrive")
	}
}
