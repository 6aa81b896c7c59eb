package strict

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A fragment is refused wherever it is: servers that cut it off read another path, or another value
// of a query.
func TestTargetWithAFragment(t *testing.T) {
	f := func(target string, refused bool) {
		t.Helper()
		r := &http.Request{Method: http.MethodGet, Host: "example.com", RequestURI: target, URL: new(url.URL), ProtoMajor: 1}
		if p := Parse(target, r.URL); p != nil {
			t.Fatalf("%q: %+v", target, p)
		}
		if p := Target(r); (p != nil) != refused {
			t.Errorf("%q: %+v", target, p)
		}
	}
	for _, target := range []string{"/#", "/denied#x", "/?user=ann#", "/a?user=ann#1&b=c", "http://example.com/?user=ann#1", "/a#b?c"} {
		f(target, true)
		f(strings.ReplaceAll(target, "#", "%23"), false)
	}
}

func TestValidHost(t *testing.T) {
	for _, host := range []string{"a", "example.com", "EXAMPLE.com.", "a_b:80", "127.0.0.1:65535", "[::1]", "[2001:db8::1]:443", "xn--bcher-kva.example"} {
		if !ValidHost(host) {
			t.Errorf("%q is refused", host)
		}
	}
	for _, host := range []string{
		"", ":80", "a:", "a:x", "a:123456", "u@a", "a/b", "a b", "a,b", "a%41", "bücher", "[::1", "[::1]x", "[::1]:", "[127.0.0.1]", "[fe80::1%25eth0]",
		"::1", "a\\b", "a#b", "a?b", strings.Repeat("a", 256),
	} {
		if ValidHost(host) {
			t.Errorf("%q passes", host)
		}
	}
}
