package describe

import (
	"net/http"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// A described request reads as one from a front end does, with the identities that were
// named in place of those that were found.
func TestRequest(t *testing.T) {
	f := func(r Request, want string) {
		t.Helper()
		made, err := r.Request()
		if err != nil {
			t.Errorf("%+v: %v", r, err)
			return
		}
		named := made.Values.(interface{ Identity(string) (string, bool) })
		ip, missing := named.Identity("ip")
		if !missing {
			ip, _ = made.Values.Value("ip")
		}
		user, _ := named.Identity("user")
		got := strings.TrimSpace(made.Method + " " + made.Host + " " + made.Path + " " + made.RawPath + " from " + ip + " as " + user)
		if got != want {
			t.Errorf("%+v: got %q, want %q", r, got, want)
		}
	}
	f(Request{URL: "/posts"}, "GET localhost /posts  from  as")
	f(Request{Method: "POST", URL: "/a%2Fb?x=1", IP: Someone}, "POST localhost /a/b /a%2Fb from 192.0.2.1 as")
	f(Request{URL: "example.com/a", IP: Someone, As: map[string]string{"ip": "2001:db8::1", "user": "42"}}, "GET example.com /a  from 2001:db8::/64 as 42")
	f(Request{URL: "https://a.example/b", Header: http.Header{"Host": {"c.example"}}}, "GET c.example /b  from  as")
	f(Request{URL: "/%zz"}, "GET localhost /%zz  from  as") // as it was written
	// A URL within the path or the query is a part of it.
	f(Request{URL: "/login?next=https://a.example/b"}, "GET localhost /login  from  as")
	f(Request{URL: "c.example/login?next=https://a.example/b"}, "GET c.example /login  from  as")
	f(Request{URL: "http://c.example/login?next=https://a.example/b"}, "GET c.example /login  from  as")
	f(Request{URL: "/proxy/https://a.example/b"}, "GET localhost /proxy/https://a.example/b  from  as")
}

func TestNotARequest(t *testing.T) {
	for _, r := range []Request{
		{}, {URL: "/", Method: "G T"}, {URL: "http://[::1/"}, {URL: "/", IP: "here"}, {URL: "/", As: map[string]string{"ip": "here"}},
	} {
		if made, err := r.Request(); err == nil {
			t.Errorf("%+v was made into %+v", r, made)
		}
	}
}

// A request that comes through a front end gets the described cost and identities there.
func TestMatcher(t *testing.T) {
	r := Request{URL: "/", Cost: 7, As: map[string]string{"user": "42"}}
	seen := int64(0)
	m := r.Matcher(matcher(func(q *tidegate.Request) { seen = q.Cost }))
	m.Match(&tidegate.Request{Path: "/"}, nil)
	if seen != 7 {
		t.Errorf("the matcher saw a cost of %d, want 7", seen)
	}
}

type matcher func(*tidegate.Request)

func (m matcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	m(r)
	return dst
}

func TestUnknown(t *testing.T) {
	r := Request{As: map[string]string{"user": "42", "tenent": "a", "x": "y"}}
	var got []string
	r.Unknown([]string{"ip", "tenant", "user"}, func(name, near string) { got = append(got, name+" "+near) })
	if strings.Join(got, "|") != "tenent tenant|x " {
		t.Errorf("got %q", got)
	}
}
