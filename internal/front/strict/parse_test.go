package strict

import (
	"net/url"
	"reflect"
	"testing"
)

// Parse reads targets as net/http does.
func FuzzParse(f *testing.F) {
	for _, target := range []string{
		"/", "/a/b?c=d", "/a?", "//h/a", "/a%2Fb", "/%zz", "*", "http://h/a?b", "a", "", "/a#b", "/a?b#c", "/a;b", `/a\b`, "/ä", "/a b", "/a:b@c=d+e,f$g&h", "?a", "http:a", "/?\x00", "/a?\x7f", "a://@",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		var got url.URL
		problem := Parse(target, &got)
		want, err := url.ParseRequestURI(target)
		if refused := problem != nil; refused != (err != nil) {
			t.Fatalf("%q: refused is %t, net/url says %v", target, refused, err)
		}
		if problem == nil && !reflect.DeepEqual(&got, want) {
			t.Fatalf("%q: got %#v, want %#v", target, got, *want)
		}
	})
}

func TestParsePlainAllocatesNothing(t *testing.T) {
	var u url.URL
	if n := testing.AllocsPerRun(100, func() { Parse("/api/v1/things.json?page=2", &u) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
