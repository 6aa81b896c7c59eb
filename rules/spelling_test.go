package rules

import "testing"

func TestCleanPath(t *testing.T) {
	set := parse(t, "rules: [{ name: a, per: path, limits: 1/second }]", Config{})
	f := func(path, want string) {
		t.Helper()
		r := request("GET /")
		r.Path = path
		if got := set.Match(r, nil)[0].Key; got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
	f("/api/", "/api")
	f("/api//users/../posts/./", "/api/posts")
	f("", "/")
	f("/", "/")
	f("api", "/api")
	f("*", "*")
}

func TestPlainHost(t *testing.T) {
	f := func(host, want string) {
		t.Helper()
		if got := plainHost(host); got != want {
			t.Errorf("%q becomes %q, want %q", host, got, want)
		}
	}
	f("api.example.com", "api.example.com")
	f("API.Example.com.:8080", "api.example.com")
	f("[2001:DB8::1]:80", "2001:db8::1")
	f("2001:db8::1", "2001:db8::1")
	f("", "")
}
